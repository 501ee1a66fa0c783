#include "comm/network_transport.h"

#include "base/invariant.h"

#include <algorithm>

namespace lockstep::comm {

NetworkTransport::NetworkTransport(std::shared_ptr<Port> port, std::vector<int> members,
                                   int channel)
    : port_(std::move(port)),
      members_(std::move(members)),
      channel_(channel),
      outgoing_(members_.size()),
      incoming_(members_.size()) {}

NetworkTransport::~NetworkTransport() {
  const auto idle = [](const End& end) { return end.messages.empty(); };
  if (!std::ranges::all_of(outgoing_, idle) || !std::ranges::all_of(incoming_, idle)) {
    port_->abandon();
  }
}

template <class Start>
std::uint64_t NetworkTransport::note(End& end, const Pieces& pieces, Start start) {
  Message message;
  for (const Piece& piece : pieces) {
    for (std::int64_t begin = 0; begin < piece.bytes; begin += Port::kMostBytes) {
      const std::int64_t bytes = std::min(Port::kMostBytes, piece.bytes - begin);
      message.push_back(start(std::span(piece.data + begin, static_cast<std::size_t>(bytes))));
    }
  }
  LOCKSTEP_INVARIANT(message.empty(), ==, false);
  end.messages.push_back(std::move(message));
  return ++end.noted;
}

std::uint64_t NetworkTransport::send(int peer, Pieces pieces) {
  return note(outgoing_.at(index(peer)), pieces, [&](std::span<std::byte> bytes) {
    return port_->send(members_[index(peer)], channel_, bytes);
  });
}

std::uint64_t NetworkTransport::receive(int peer, Pieces pieces) {
  return note(incoming_.at(index(peer)), pieces, [&](std::span<std::byte> bytes) {
    return port_->receive(members_[index(peer)], channel_, bytes);
  });
}

void NetworkTransport::give_up() noexcept {
  for (End& end : incoming_) {
    for (const Message& message : end.messages) {
      std::ranges::for_each(message, [](const auto& transfer) { transfer->cancel(); });
    }
    end.messages.clear();
  }
}

void NetworkTransport::advance(End& end) {
  while (!end.messages.empty()) {
    Message& message = end.messages.front();
    while (!message.empty() && message.back()->done()) {
      message.pop_back();
    }
    if (!message.empty()) {
      return;
    }
    end.messages.pop_front();
    ++end.completed;
  }
}

void NetworkTransport::progress() {
  for (std::size_t peer = 0; peer < members_.size(); ++peer) {
    advance(outgoing_[peer]);
    advance(incoming_[peer]);
  }
}

}  // namespace lockstep::comm
