#include "comm/message.h"

#include "comm/arguments.h"
#include "lockstep/error.h"

#include <memory>

namespace lockstep::comm {

Message::Message(const Fingerprint& fingerprint, Span data, int peer, Communicator& group)
    : Operation(fingerprint),
      data_(data),
      peer_(peer),
      rank_(group.rank()),
      group_name_(group.options().name),
      transport_(group.message_transport()) {}

bool Message::run(std::int64_t, Traffic& traffic) {
  if (state_ == State::starts) {
    post_first(traffic);
    state_ = sends() ? State::moves : State::takes_header;
  }
  transport_.progress();
  if (state_ == State::takes_header && moved()) {
    require_same();
    post_payload(traffic);
    state_ = State::moves;
    transport_.progress();
  }
  return state_ == State::moves && moved();
}

void Message::post_first(Traffic& traffic) {
  const Piece header{reinterpret_cast<std::byte*>(&header_), sizeof header_};
  if (sends()) {
    header_ = fingerprint();
    number_ = transport_.send(peer_, {header});
    post_payload(traffic);
  } else {
    number_ = transport_.receive(peer_, {header});
  }
}

void Message::post_payload(Traffic& traffic) {
  if (data_.count == 0) {
    return;
  }
  const Piece payload{static_cast<std::byte*>(data_.data), data_.bytes()};
  if (sends()) {
    number_ = transport_.send(peer_, {payload});
    traffic.sent += data_.bytes();
  } else {
    number_ = transport_.receive(peer_, {payload});
    traffic.received += data_.bytes();
  }
}

bool Message::moved() const {
  return (sends() ? transport_.sent(peer_) : transport_.received(peer_)) >= number_;
}

void Message::require_same() const {
  Fingerprint theirs = header_;
  theirs.kind = Kind::recv;
  theirs.sequence = fingerprint().sequence;  // each rank counts its own
  if (!same(theirs, fingerprint())) {
    throw Mismatch("group '" + group_name_ + "': rank " + std::to_string(peer_) + " sends rank " +
                   std::to_string(rank_) + " another message than it receives: " +
                   describe(header_) + "; " + describe(fingerprint()) +
                   "; both must call send and recv in the same order, with the same dtype, count "
                   "and name");
  }
}

Work issue_message(Communicator& group, Kind kind, const Span& data, int peer,
                   std::string_view name) {
  require_plain(kind, data);
  require_peer(kind, peer, group);
  Fingerprint fingerprint = fingerprint_of(kind, name);
  fingerprint.add(part_of(data));
  return group.issue_message(std::make_shared<Message>(fingerprint, data, peer, group));
}

}  // namespace lockstep::comm
