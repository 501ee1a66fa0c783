// Between ranks of one host, through the lines of their control segment: each byte is copied in by
// its sender and out by its receiver.
#pragma once

#include "comm/control.h"
#include "comm/transport.h"

#include <deque>
#include <vector>

namespace lockstep::comm {

class SharedTransport final : public Transport {
 public:
  // `lane`: which of the segment's sets of lines it has for itself. `control` must outlive it.
  SharedTransport(Control& control, Control::Lane lane);

  std::uint64_t send(int peer, Pieces pieces) override;
  std::uint64_t receive(int peer, Pieces pieces) override;
  void progress() override;
  std::uint64_t sent(int peer) const override { return outgoing_.at(index(peer)).completed; }
  std::uint64_t received(int peer) const override { return incoming_.at(index(peer)).completed; }

 private:
  struct Message {
    Pieces pieces;
    std::size_t piece = 0;    // the first that is not done
    std::int64_t offset = 0;  // of it
  };
  struct End {
    std::deque<Message> messages = {};  // not completed, in order
    std::uint64_t noted = 0;
    std::uint64_t completed = 0;
  };

  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  static std::uint64_t note(End& end, Pieces pieces);
  // Moves what `move(piece's data, bytes)` takes; returns whether that was anything.
  template <class Move>
  static bool advance(End& end, Move move);

  Control& control_;
  Control::Lane lane_;
  std::vector<End> outgoing_;  // per peer
  std::vector<End> incoming_;
};

}  // namespace lockstep::comm
