#include "comm/shared_transport.h"

#include "base/invariant.h"

#include <utility>

namespace lockstep::comm {

SharedTransport::SharedTransport(Control& control, Control::Lane lane)
    : control_(control),
      lane_(lane),
      outgoing_(static_cast<std::size_t>(control.ranks())),
      incoming_(static_cast<std::size_t>(control.ranks())) {}

std::uint64_t SharedTransport::note(End& end, Pieces pieces) {
  std::int64_t bytes = 0;
  for (const Piece& piece : pieces) {
    bytes += piece.bytes;
  }
  LOCKSTEP_INVARIANT(bytes, >, 0);
  end.messages.push_back({std::move(pieces)});
  return ++end.noted;
}

std::uint64_t SharedTransport::send(int peer, Pieces pieces) {
  LOCKSTEP_INVARIANT(peer, !=, control_.rank());
  return note(outgoing_.at(index(peer)), std::move(pieces));
}

std::uint64_t SharedTransport::receive(int peer, Pieces pieces) {
  LOCKSTEP_INVARIANT(peer, !=, control_.rank());
  return note(incoming_.at(index(peer)), std::move(pieces));
}

template <class Move>
bool SharedTransport::advance(End& end, Move move) {
  bool moved = false;
  while (!end.messages.empty()) {
    Message& message = end.messages.front();
    while (message.piece < message.pieces.size()) {
      const Piece& piece = message.pieces[message.piece];
      const std::int64_t left = piece.bytes - message.offset;
      const std::int64_t bytes = left == 0 ? 0 : move(piece.data + message.offset, left);
      moved = moved || bytes > 0;
      if (bytes < left) {
        message.offset += bytes;
        return moved;
      }
      ++message.piece;
      message.offset = 0;
    }
    end.messages.pop_front();
    ++end.completed;
  }
  return moved;
}

void SharedTransport::progress() {
  bool moved = false;
  for (int peer = 0; peer < control_.ranks(); ++peer) {
    if (End& end = outgoing_[index(peer)]; !end.messages.empty()) {
      Line& line = control_.line(lane_, control_.rank(), peer);
      moved |= advance(
          end, [&](std::byte* data, std::int64_t bytes) { return line.write(data, bytes); });
    }
    if (End& end = incoming_[index(peer)]; !end.messages.empty()) {
      Line& line = control_.line(lane_, peer, control_.rank());
      moved |=
          advance(end, [&](std::byte* data, std::int64_t bytes) { return line.read(data, bytes); });
    }
  }
  if (moved) {
    control_.announce();
  }
}

}  // namespace lockstep::comm
