// Between ranks that share no memory: every piece of a message is one message of the port, from the
// caller's memory and into it.
#pragma once

#include "comm/port.h"
#include "comm/transport.h"

#include <deque>
#include <memory>
#include <vector>

namespace lockstep::comm {

class NetworkTransport final : public Transport {
 public:
  // `members` are the group's ranks as the port numbers them; `channel` is for this transport
  // alone.
  NetworkTransport(std::shared_ptr<Port> port, std::vector<int> members, int channel);
  // What is still on its way keeps MPI from being ended: the memory may go before the message does.
  ~NetworkTransport() override;
  NetworkTransport(const NetworkTransport&) = delete;
  NetworkTransport& operator=(const NetworkTransport&) = delete;

  std::uint64_t send(int peer, Pieces pieces) override;
  std::uint64_t receive(int peer, Pieces pieces) override;
  void progress() override;
  void give_up() noexcept override;
  std::uint64_t sent(int peer) const override { return outgoing_.at(index(peer)).completed; }
  std::uint64_t received(int peer) const override { return incoming_.at(index(peer)).completed; }

 private:
  using Message = std::vector<std::unique_ptr<Port::Transfer>>;
  struct End {
    std::deque<Message> messages = {};  // not completed, in order
    std::uint64_t noted = 0;
    std::uint64_t completed = 0;
  };

  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  static void advance(End& end);
  // Starts the pieces that have bytes.
  template <class Start>
  static std::uint64_t note(End& end, const Pieces& pieces, Start start);

  std::shared_ptr<Port> port_;
  std::vector<int> members_;
  int channel_;
  std::vector<End> outgoing_;  // per peer
  std::vector<End> incoming_;
};

}  // namespace lockstep::comm
