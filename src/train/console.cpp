#include "train/console.h"

#include "base/quantity.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

using quantity::bytes_text;

constexpr std::chrono::milliseconds kLiveEvery{100};
constexpr std::chrono::seconds kLineEvery{2};

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string line_of(const char* what, const std::string& text) {
  return format("%-12s", what) + text + "\n";
}

std::string plural(std::int64_t count, const char* thing) {
  return grouped(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string cells(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) {
    line += format("%12s", text.c_str());
  }
  return line;
}

std::vector<std::string> ledger_cells(const plan::Ledger& bytes) {
  return {bytes_text(bytes.parameters), bytes_text(bytes.gradients), bytes_text(bytes.optimizer),
          bytes_text(bytes.transient)};
}

std::string ledger_table(const plan::Ledger& bytes) {
  return line_of("ledger", cells({"parameters", "gradients", "optimizer", "transient", "total"})) +
         line_of("  per rank", cells(ledger_cells(bytes)) + cells({bytes_text(bytes.total())}) +
                                   "  + activations");
}

std::string phase_line(const char* name, const MemorySample& sample) {
  return line_of(name,
                 cells(ledger_cells(sample.held)) +
                     cells({bytes_text(sample.activations), bytes_text(sample.activations_peak),
                            bytes_text(*sample.resident)}));
}

// Of the rank that has most resident, at the moments that were looked at.
std::string memory_table(const Report& report) {
  const auto most = std::ranges::max_element(report.ranks, {}, &RankRecord::resident_peak);
  if (most == report.ranks.end() || !most->at(Moment::before_forward).resident) {
    return "";
  }
  std::string table = line_of("memory", cells({"parameters", "gradients", "optimizer", "transient",
                                               "activations", "at most", "resident"})) +
                      line_of("  formula", cells(ledger_cells(report.predicted.ledger)));
  constexpr std::array kPhases{std::pair{"  at rest", Moment::before_forward},
                               std::pair{"  forward", Moment::after_forward},
                               std::pair{"  last hook", Moment::after_backward},
                               std::pair{"  update", Moment::after_update}};
  for (const auto& [name, moment] : kPhases) {
    table += most->at(moment).resident ? phase_line(name, most->at(moment)) : "";
  }
  return table + line_of("  shared", "of all ranks " + bytes_text(shared_resident(report)) +
                                         " resident, of " + bytes_text(report.shared_allocated) +
                                         " allocated");
}

std::string batch_text(const Options& options) {
  return plural(options.ranks, "rank") + " x " + grouped(options.accumulate) +
         (options.accumulate == 1 ? " micro-batch of " : " micro-batches of ") +
         plural(options.micro_batch, "sequence") + " of " + plural(options.sequence, "token") +
         " = " + plural(tokens_per_step(options), "token") + " per step";
}

// A bar `width` wide, brackets included; nothing where there is no room for one.
std::string bar(double done, std::int64_t width) {
  const std::int64_t inside = width - 2;
  if (inside < 4) {
    return "";
  }
  const auto filled = std::llround(done * static_cast<double>(inside));
  std::string text = "[";
  for (std::int64_t i = 0; i < inside; ++i) {
    text += i < filled ? '#' : '.';
  }
  return text + "] ";
}

std::int64_t terminal_columns(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string step_text(const StepResult& step, const Options& options, double seconds_per_step) {
  const std::int64_t done = step.step + 1;
  const double left_s = seconds_per_step * static_cast<double>(options.steps - done);
  const double speed = static_cast<double>(tokens_per_step(options)) / seconds_per_step;
  return format("step %lld/%lld  loss %.4f  lr %.2e  norm %.3f  ", static_cast<long long>(done),
                static_cast<long long>(options.steps), step.loss, step.learning_rate,
                step.grad_norm) +
         grouped(std::llround(speed)) + " tokens/s  " + duration_text(left_s) + " left" +
         (step.skipped ? "  skipped: a gradient was not finite" : "");
}

}  // namespace

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(std::abs(number));
  std::string text = number < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      text += ',';
    }
    text += digits[i];
  }
  return text;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::max(0.0, std::round(seconds)));
  if (whole >= 3600) {
    return format("%ldh%02ldm", whole / 3600, whole % 3600 / 60);
  }
  return whole >= 60 ? format("%ldm%02lds", whole / 60, whole % 60) : format("%lds", whole);
}

std::string live_line(const std::string& text, double done, std::int64_t columns) {
  constexpr std::int64_t kWidestBar = 26;
  // The last column stays free: some terminals wrap when it is written.
  const std::int64_t room = columns - 1;
  const auto length = static_cast<std::int64_t>(text.size());
  const std::string whole = bar(done, std::min(kWidestBar, room - length - 1)) + text;
  return whole.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(0, room)));
}

Console::Console(std::FILE* stream) : stream_(stream), terminal_(::isatty(::fileno(stream)) == 1) {}

void Console::print(const std::string& text) {
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
}

void Console::end_live_line() {
  if (std::exchange(live_line_, false)) {
    print("\n");
  }
}

void Console::note(const std::string& line) {
  end_live_line();
  print(line + "\n");
}

void Console::header(const Header& header) {
  const Options& options = header.options;
  print(line_of("model", options.model + ", " + plural(header.parameters, "parameter")) +
        line_of("ranks", plural(options.ranks, "rank") + " x " + plural(header.threads, "thread") +
                             ", stage " + std::string(name_of(options.stage)) + ", precision " +
                             std::string(name_of(options.precision))) +
        line_of("data", options.data + ": " + grouped(header.training_tokens) +
                            " tokens to train on, " + grouped(header.validation_tokens) +
                            " for validation") +
        line_of("batch", batch_text(options)) + ledger_table(header.predicted.ledger) +
        line_of("to move", bytes_text(header.predicted.step.sent) + " sent, " +
                               bytes_text(header.predicted.step.received) +
                               " received per rank and step") +
        line_of("run folder", header.run_folder));
}

void Console::show_live(const std::string& text, double done) {
  print(
      std::string("\r").append(live_line(text, done, terminal_columns(stream_))).append("\x1b[K"));
  live_line_ = true;
}

void Console::tokenising(std::int64_t done_bytes, std::int64_t total_bytes) {
  const auto now = Clock::now();
  const bool finished = done_bytes == total_bytes;
  if (!tokenising_since_) {
    tokenising_since_ = shown_ = now;
  }
  const double seconds = std::chrono::duration<double>(now - *tokenising_since_).count();
  if (finished) {
    end_live_line();
    print(line_of("tokenised", bytes_text(total_bytes) + " in " + duration_text(seconds)));
  } else if (now - shown_ >= (terminal_ ? Clock::duration(kLiveEvery) : kLineEvery)) {
    shown_ = now;
    const std::string text = bytes_text(done_bytes) + " of " + bytes_text(total_bytes);
    terminal_ ? show_live("tokenising " + text,
                          static_cast<double>(done_bytes) / static_cast<double>(total_bytes))
              : print(line_of("tokenising", text));
  }
}

bool Console::due(std::int64_t done, const Options& options) {
  const auto now = Clock::now();
  const bool first = begun_at_ == 0;
  if (first) {  // a resumed run does not begin at step 1
    begun_at_ = done;
    first_step_ = now;
  }
  const auto every = terminal_ ? Clock::duration(kLiveEvery) : Clock::duration(kLineEvery);
  const bool shows = first || done == options.steps || now - shown_ >= every;
  shown_ = shows ? now : shown_;
  return shows;
}

void Console::step(const StepResult& step, const Options& options) {
  const std::int64_t done = step.step + 1;
  if (!due(done, options)) {
    return;
  }
  const double elapsed = std::chrono::duration<double>(shown_ - first_step_).count();
  const double per_step =
      done > begun_at_ ? elapsed / static_cast<double>(done - begun_at_) : step.ms / 1e3;
  const std::string text = step_text(step, options, per_step);
  if (terminal_) {
    show_live(text, static_cast<double>(done) / static_cast<double>(options.steps));
  } else {
    print(text + "\n");
  }
  if (done == options.steps) {
    end_live_line();
  }
}

void Console::validation(const ValidationPoint& point) {
  note(format("validation after %lld steps: %.4f nats per token",
              static_cast<long long>(point.step), point.loss));
}

void Console::outcome(const Report& report) {
  end_live_line();
  print(memory_table(report));
  if (!report.history.step_ms.empty()) {
    note(format(
        "speed       %.1f ms per step, %s tokens/s, MFU %.1f %% of the %.0f GFLOP/s that "
        "matrix products reach here",
        median(report.history.step_ms), grouped(std::llround(tokens_per_second(report))).c_str(),
        mfu(report) * 100, report.peak_flops / 1e9));
  }
  for (const std::string& line : report.advice) {
    note("advice      " + line);
  }
}

}  // namespace lockstep::train
