// The process that is the ranks' parent: starts them, relays their output, hears their reports,
// ends them together and says how the job ended. It has no terminal's signals of its own; those
// come from the launcher over a pipe, whose end means that the launcher is dead.
#pragma once

#include "launch/control_socket.h"
#include "launch/file_descriptor.h"
#include "launch/job.h"
#include "launch/outcome.h"
#include "launch/output.h"
#include "launch/rank_process.h"
#include "launch/signals.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::launch {

class Supervisor {
 public:
  // `launcher`: non-blocking pipe of signal numbers, one byte each.
  Supervisor(const Job& job, const SignalSet& signals, FileDescriptor launcher);

  // Runs the job to its end and returns the exit code. Throws SystemError when it can't be started;
  // nothing of it is left then.
  int run();

 private:
  enum class Phase : std::uint8_t {
    running,
    reporting,    // a rank failed; the others may say so or finish
    interrupted,  // the user's signal was passed on; ranks may finish
    terminating,  // SIGTERM was sent
    killing,      // SIGKILL was sent, and is again until all are gone
    draining,     // every process is gone; the reader has not taken all output
  };
  struct RankState {
    pid_t pid = -1;
    bool running = true;
    LineRelay output;
    LineRelay error;
    RankEnd end;
  };

  void start_ranks();
  int time_left_ms() const;  // to the deadline of the phase; -1: it has none
  void step(int timeout_ms);
  void wait_for_events(int timeout_ms);
  void handle_signals();
  void listen_to_launcher();
  void handle_signal(int signal);
  void end_on_users_signal(int signal);
  void receive_reports();
  void reap();
  void note_end(pid_t pid, int status, std::int64_t time_ns);
  void note_failure();
  void enter(Phase phase);
  void act_on_deadline();
  void kill_everything();
  void signal_ranks(int signal) const;
  bool any_running() const;
  void drain();
  bool output_left() const;
  void abandon_output();
  Verdict verdict() const;
  // Whether the rank's streams are the launcher's own.
  bool direct(int rank) const;
  bool say_lost_output();
  void say(std::string_view line);
  OutputSink& error_sink() { return separate_error_ ? *separate_error_ : output_; }

  const Job& job_;
  const SignalSet& signals_;
  SignalReader reader_;
  FileDescriptor launcher_;
  ControlSocket control_;
  OutputSink output_;
  std::optional<OutputSink> separate_error_;  // none where both go to the same place
  std::vector<RankState> ranks_;
  Phase phase_ = Phase::running;
  std::int64_t deadline_ns_ = 0;  // when the phase is over; 0: never
  std::optional<int> user_signal_;
};

}  // namespace lockstep::launch
