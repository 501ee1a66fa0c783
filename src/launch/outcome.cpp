#include "launch/outcome.h"

#include "launch/report.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <string.h>
#include <string_view>
#include <tuple>
#include <utility>

namespace lockstep::launch {
namespace {

struct Failure {
  FailureKind kind;
  std::int64_t time_ns;
  bool killed;
  int rank;
  std::string text;
};

// What tells a failure's place in the order: causes before consequences, then by time. Ends that
// the launcher saw in one look have one time; of those a killed rank hardly reacted to the others.
auto order_of(const Failure& failure) {
  return std::tuple(failure.kind, failure.time_ns, !failure.killed, failure.rank);
}

// Signals that say what went wrong to those who know them.
std::string_view meaning_of(int signal) {
  switch (signal) {
    case SIGBUS:
      return ", a file was cut short while in use or shared memory ran out";
    case SIGPIPE:
      return ", whoever read its output has left";
    case SIGXFSZ:
      return ", a file or shared memory went beyond ulimit -f";
    default:
      return "";
  }
}

std::string describe_end(const RankEnd& end) {
  const bool killed = WIFSIGNALED(end.wait_status);
  std::string text;
  if (killed) {
    const int signal = WTERMSIG(end.wait_status);
    text = "killed by signal " + std::to_string(signal) + " (" + signal_name(signal) + ")";
    text += meaning_of(signal);
  } else {
    text = "exited with status " + std::to_string(WEXITSTATUS(end.wait_status));
  }
  return end.last_error_line.empty() ? text : text + ": " + end.last_error_line;
}

Failure failure_of(const RankEnd& end) {
  const bool killed = WIFSIGNALED(end.wait_status) && end.ended_by == EndedBy::itself;
  if (end.report) {
    return {end.report->kind, end.report->time_ns, killed, end.rank, one_line(end.report->text)};
  }
  return {FailureKind::cause, end.time_ns, killed, end.rank, one_line(describe_end(end))};
}

// One line per text: ranks that say the same share it.
std::vector<std::string> lines_of(std::vector<Failure> failures) {
  std::ranges::sort(failures, {}, order_of);
  std::vector<std::string> lines;
  while (!failures.empty()) {
    const std::string text = failures.front().text;
    std::vector<int> ranks;
    for (const Failure& failure : failures) {
      if (failure.text == text) {
        ranks.push_back(failure.rank);
      }
    }
    lines.push_back(name_ranks(ranks) + ": " + text);
    std::erase_if(failures, [&](const Failure& failure) { return failure.text == text; });
  }
  return lines;
}

bool exited_with_usage_error(const RankEnd& end) {
  return WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == 2;
}

int exit_code_of(std::span<const RankEnd> ends, std::optional<int> user_signal) {
  if (user_signal) {
    return 128 + *user_signal;
  }
  if (std::ranges::none_of(ends, failed)) {
    return 0;
  }
  const bool usage = std::ranges::all_of(
      ends, [](const RankEnd& end) { return !failed(end) || exited_with_usage_error(end); });
  return usage ? 2 : 1;
}

}  // namespace

bool failed(const RankEnd& end) {
  return end.report.has_value() || (end.ended_by == EndedBy::itself && end.wait_status != 0);
}

Verdict judge(std::span<const RankEnd> ends, std::optional<int> user_signal) {
  Verdict verdict;
  verdict.exit_code = exit_code_of(ends, user_signal);
  std::vector<Failure> failures;
  std::vector<int> ended;
  for (const RankEnd& end : ends) {
    if (failed(end)) {
      failures.push_back(failure_of(end));
    } else if (end.ended_by == EndedBy::launcher) {
      ended.push_back(end.rank);
    }
  }
  verdict.lines = lines_of(std::move(failures));
  if (user_signal) {
    verdict.lines.push_back("ended by " + signal_name(*user_signal));
  } else if (!ended.empty()) {
    verdict.lines.push_back(name_ranks(ended) +
                            ": still running after that, ended by the launcher");
  }
  return verdict;
}

std::string name_ranks(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  std::vector<std::string> items;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    const bool run = last >= first + 2;
    items.push_back(std::to_string(ranks[first]));
    if (run) {
      items.back().append("-").append(std::to_string(ranks[last]));
    }
    first = run ? last + 1 : first + 1;
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  }
  return text;
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace lockstep::launch
