// One collective in flight: a fixed number of steps, each run by this rank when its gate opens.
// The steps of all operations of a group run in the order of issue.
#pragma once

#include "comm/fingerprint.h"
#include "comm/flight_record.h"
#include "lockstep/group.h"

#include <cstdint>
#include <memory>

namespace lockstep::comm {

class Operation {
 public:
  // What a step waits for.
  enum class Gate : std::uint8_t {
    open,     // nothing: it touches only what this rank owns
    entered,  // every rank has entered the same operation
    stepped,  // … and has run all steps before this one
  };
  // When wait() may return.
  enum class Ends : std::uint8_t {
    alone,     // with this rank's last step
    together,  // when every rank has run its last step
  };

  explicit Operation(const Fingerprint& fingerprint) : fingerprint_(fingerprint) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Fingerprint& fingerprint() const { return fingerprint_; }
  virtual std::int64_t steps() const = 0;  // the same on all ranks
  virtual Gate gate(std::int64_t step) const = 0;
  virtual Ends ends() const = 0;
  // The only rank that takes part besides this one; -1: all do.
  virtual int peer() const { return -1; }
  // Counts what it moves between ranks. Returns whether the step is complete; where not, it has
  // done what could be done without waiting, and is called again.
  virtual bool run(std::int64_t step, Traffic& traffic) = 0;

 private:
  friend class Communicator;
  friend class lockstep::Work;
  enum class State : std::uint8_t { created, running, executed, awaited };

  Fingerprint fingerprint_;
  FlightRecord record_;  // from issue on
  State state_ = State::created;
  std::int64_t next_step_ = 0;
  std::uint64_t first_step_ = 0;                // steps of all operations before this one
  std::int64_t waiting_since_ns_ = 0;           // 0: nobody has waited yet
  std::shared_ptr<Communicator> communicator_;  // from issue on
};

// Has no steps: ends when every rank has entered. For barrier and for what only synchronises.
class Meet : public Operation {
 public:
  using Operation::Operation;
  std::int64_t steps() const override { return 0; }
  Gate gate(std::int64_t) const override { return Gate::entered; }
  Ends ends() const override { return Ends::alone; }
  bool run(std::int64_t, Traffic&) override { return true; }
};

}  // namespace lockstep::comm
