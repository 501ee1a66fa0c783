#include "launch/supervisor.h"

#include "base/invariant.h"
#include "launch/process_tree.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
// Everything ends within 5 s of the first failure: 1.5 + 1 + what SIGKILL takes.
constexpr std::int64_t kReportingTime = 1500 * kMillisecond;
constexpr std::int64_t kInterruptedTime = 3000 * kMillisecond;
constexpr std::int64_t kTerminatingTime = 1000 * kMillisecond;
constexpr std::int64_t kKillInterval = 50 * kMillisecond;
constexpr std::int64_t kDrainInterval = 500 * kMillisecond;
constexpr std::chrono::milliseconds kPatience{2000};

bool same_file(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// Where mpirun is the one process, what is said of it is not said of a rank.
void call_mpirun_by_name(std::string& line) {
  const std::string rank = name_ranks({0}) + ":";
  if (line.starts_with(rank)) {
    line.replace(0, rank.size(), "mpirun:");
  }
}

}  // namespace

Supervisor::Supervisor(const Job& job, const SignalSet& signals, FileDescriptor launcher)
    : job_(job),
      signals_(signals),
      reader_(signals),
      launcher_(std::move(launcher)),
      control_(job.control),
      output_(STDOUT_FILENO) {
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) {
    separate_error_.emplace(STDERR_FILENO);
  }
}

int Supervisor::run() {
  say(describe(job_));
  start_ranks();
  while (any_running()) {
    step(time_left_ms());
  }
  end_descendants(kPatience);
  drain();
  const Verdict result = verdict();
  if (!result.lines.empty() && direct(0) && ::isatty(STDERR_FILENO)) {
    error_sink().append("\n");  // the rank may have left a progress bar there
  }
  for (const std::string& line : result.lines) {
    say(line);
  }
  const bool lost = say_lost_output();
  drain();
  return lost && result.exit_code == 0 ? 1 : result.exit_code;
}

bool Supervisor::direct(int rank) const {
  return job_.ranks == 1 || (rank == 0 && job_.output == OutputMode::rank_zero_direct);
}

// A reader that leaves (EPIPE) has seen enough; a full disk loses what somebody wanted.
bool Supervisor::say_lost_output() {
  const int failure = output_.failure();
  const bool lost = failure != 0 && failure != EPIPE;
  if (lost) {
    say(std::string("standard output can't be written (") + std::strerror(failure) +
        "); what the ranks printed is incomplete");
  }
  return lost;
}

// Between two starts the job is looked after: where starting takes long (hundreds of ranks on a few
// cores), a signal or a rank's failure ends it before all have been started. A failed job goes on
// starting for its reporting time: the first cause may be a rank's that is yet to come.
void Supervisor::start_ranks() try {
  for (int rank = 0; rank < job_.ranks && phase_ <= Phase::reporting; ++rank) {
    const Stream stream = direct(rank) ? Stream::inherited : Stream::piped;
    StartedRank started = start_rank(job_, rank, stream, signals_.original());
    const std::string prefix = std::string("[").append(std::to_string(rank)).append("] ");
    RankEnd end;
    end.rank = rank;
    ranks_.push_back({.pid = started.pid,
                      .output = LineRelay(std::move(started.output), output_, prefix),
                      .error = LineRelay(std::move(started.error), error_sink(), prefix),
                      .end = std::move(end)});
    step(0);
  }
} catch (...) {
  end_descendants(kPatience);
  throw;
}

int Supervisor::time_left_ms() const {
  if (deadline_ns_ == 0) {
    return -1;
  }
  const std::int64_t left = deadline_ns_ - monotonic_ns();
  return static_cast<int>(std::max<std::int64_t>(0, left / kMillisecond + 1));
}

void Supervisor::step(int timeout_ms) {
  wait_for_events(timeout_ms);
  receive_reports();  // before the dead are counted: what they sent is still here
  handle_signals();
  listen_to_launcher();
  act_on_deadline();
}

void Supervisor::wait_for_events(int timeout_ms) {
  std::vector<pollfd> watched{{reader_.fd(), POLLIN, 0},
                              {launcher_.get(), POLLIN, 0},
                              {control_.fd(), POLLIN, 0},
                              {output_.pending() ? output_.fd() : -1, POLLOUT, 0},
                              {error_sink().pending() ? error_sink().fd() : -1, POLLOUT, 0}};
  const std::size_t first_relay = watched.size();
  std::vector<LineRelay*> relays;
  for (RankState& rank : ranks_) {
    for (LineRelay* relay : {&rank.output, &rank.error}) {
      if (relay->wants_input()) {
        watched.push_back({relay->fd(), POLLIN, 0});
        relays.push_back(relay);
      }
    }
  }
  if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) {
    return;
  }
  output_.flush();
  error_sink().flush();
  for (std::size_t i = 0; i < relays.size(); ++i) {
    if (watched[first_relay + i].revents != 0) {
      relays[i]->read_once();
    }
  }
}

void Supervisor::handle_signals() {
  while (const auto signal = reader_.next()) {
    if (*signal == SIGCHLD) {
      reap();
    } else {
      handle_signal(*signal);
    }
  }
}

void Supervisor::listen_to_launcher() {
  while (launcher_) {
    std::uint8_t signal = 0;
    const ssize_t bytes = ::read(launcher_.get(), &signal, 1);
    if (bytes < 0) {
      return;
    }
    if (bytes == 1) {
      handle_signal(signal);
      continue;
    }
    launcher_.reset();  // the launcher was killed: nothing may stay behind
    abandon_output();
    kill_everything();
  }
}

void Supervisor::handle_signal(int signal) {
  if (signal == SIGTSTP) {
    signal_ranks(SIGSTOP);
  } else if (signal == SIGCONT) {
    signal_ranks(SIGCONT);
  } else if (ends_job(signal)) {
    end_on_users_signal(signal);
  }
}

void Supervisor::end_on_users_signal(int signal) {
  switch (phase_) {
    case Phase::running:
      user_signal_ = signal;
      enter(Phase::interrupted);
      signal_ranks(signal);
      signal_ranks(SIGCONT);
      break;
    case Phase::draining:
      abandon_output();
      break;
    default:  // a second signal, or a job that is ending anyhow: the user won't wait
      kill_everything();
  }
}

void Supervisor::receive_reports() {
  while (auto report = control_.receive()) {
    const bool known = report->rank >= 0 && report->rank < static_cast<int>(ranks_.size());
    if (!known || user_signal_) {  // what follows the user's signal is no failure
      continue;
    }
    RankEnd& end = ranks_[static_cast<std::size_t>(report->rank)].end;
    if (!end.report) {
      end.report = std::move(report);
    }
    note_failure();
  }
}

void Supervisor::reap() {
  receive_reports();
  const std::int64_t time_ns = monotonic_ns();
  int status = 0;
  while (const pid_t pid = ::waitpid(-1, &status, WNOHANG)) {
    if (pid < 0) {
      return;
    }
    note_end(pid, status, time_ns);
  }
}

void Supervisor::note_end(pid_t pid, int status, std::int64_t time_ns) {
  const auto rank = std::ranges::find_if(
      ranks_, [&](const RankState& state) { return state.running && state.pid == pid; });
  if (rank == ranks_.end()) {  // a grandchild that lost its parent
    return;
  }
  rank->running = false;
  rank->end.wait_status = status;
  rank->end.time_ns = time_ns;
  const bool by_itself = phase_ == Phase::running || phase_ == Phase::reporting;
  rank->end.ended_by = by_itself ? EndedBy::itself : EndedBy::launcher;
  if (failed(rank->end)) {
    note_failure();
  }
}

void Supervisor::note_failure() {
  if (phase_ == Phase::running) {
    enter(Phase::reporting);
  }
}

void Supervisor::enter(Phase phase) {
  LOCKSTEP_INVARIANT(static_cast<int>(phase), >=, static_cast<int>(phase_));
  phase_ = phase;
  constexpr std::array kTimes{std::int64_t{0},  kReportingTime, kInterruptedTime,
                              kTerminatingTime, kKillInterval,  kDrainInterval};
  const std::int64_t time = kTimes.at(static_cast<std::size_t>(phase));
  deadline_ns_ = time == 0 ? 0 : monotonic_ns() + time;
}

void Supervisor::act_on_deadline() {
  if (deadline_ns_ == 0 || monotonic_ns() < deadline_ns_) {
    return;
  }
  switch (phase_) {
    case Phase::running:
      break;
    case Phase::reporting:
      enter(Phase::terminating);
      signal_ranks(SIGTERM);
      signal_ranks(SIGCONT);
      break;
    case Phase::interrupted:
    case Phase::terminating:
    case Phase::killing:
      kill_everything();
      break;
    case Phase::draining:
      if (user_signal_) {
        abandon_output();
      } else if (!output_.pending() && !error_sink().pending()) {
        for (RankState& rank : ranks_) {  // someone outside the job holds the pipe open
          rank.output.close();
          rank.error.close();
        }
      }
      enter(Phase::draining);
      break;
  }
}

void Supervisor::kill_everything() {
  if (phase_ == Phase::draining) {
    return;
  }
  enter(Phase::killing);
  kill_descendants();
}

void Supervisor::signal_ranks(int signal) const {
  for (const RankState& rank : ranks_) {
    if (rank.running) {
      ::kill(-rank.pid, signal);
    }
  }
}

bool Supervisor::any_running() const { return std::ranges::any_of(ranks_, &RankState::running); }

void Supervisor::drain() {
  enter(Phase::draining);
  while (output_left()) {
    step(time_left_ms());
  }
}

bool Supervisor::output_left() const {
  const bool sinks = output_.pending() || (separate_error_ && separate_error_->pending());
  return sinks || std::ranges::any_of(ranks_, [](const RankState& rank) {
           return rank.output.open() || rank.error.open();
         });
}

void Supervisor::abandon_output() {
  output_.abandon();
  error_sink().abandon();
  for (RankState& rank : ranks_) {
    rank.output.close();
    rank.error.close();
  }
}

Verdict Supervisor::verdict() const {
  std::vector<RankEnd> ends;
  for (const RankState& rank : ranks_) {
    ends.push_back(rank.end);
    ends.back().last_error_line = rank.error.last_line();
  }
  Verdict verdict = judge(ends, user_signal_);
  if (!job_.by_mpirun.empty()) {
    for (std::string& line : verdict.lines) {
      call_mpirun_by_name(line);
    }
  }
  return verdict;
}

void Supervisor::say(std::string_view line) {
  error_sink().append("lockstep: " + std::string(line) + "\n");
}

}  // namespace lockstep::launch
