// send and recv: from one rank to one other, which no third takes notice of.
//
// Cost: one message of X bytes behind a fingerprint, which the receiver compares with its own.
#pragma once

#include "comm/communicator.h"
#include "comm/operation.h"
#include "comm/transport.h"

#include <string_view>

namespace lockstep::comm {

class Message final : public Operation {
 public:
  // `fingerprint`'s kind says the direction. One that receives must have ended before the next one
  // on its line is run.
  Message(const Fingerprint& fingerprint, Span data, int peer, Communicator& group);

  std::int64_t steps() const override { return 1; }
  Gate gate(std::int64_t) const override { return Gate::open; }
  Ends ends() const override { return Ends::alone; }
  int peer() const override { return peer_; }
  bool run(std::int64_t step, Traffic& traffic) override;

 private:
  enum class State : std::uint8_t { starts, takes_header, moves };

  void post_first(Traffic& traffic);
  void post_payload(Traffic& traffic);
  void require_same() const;
  bool sends() const { return fingerprint().kind == Kind::send; }
  bool moved() const;

  Span data_;
  int peer_;
  int rank_;
  std::string group_name_;
  Transport& transport_;
  State state_ = State::starts;
  Fingerprint header_ = {};
  std::uint64_t number_ = 0;  // on the line, of what is posted last
};

// Checks the arguments and issues. Throws UsageError.
Work issue_message(Communicator& group, Kind kind, const Span& data, int peer,
                   std::string_view name);

}  // namespace lockstep::comm
