#include "comm/network_meeting.h"

#include "base/nonce.h"
#include "comm/meeting.h"
#include "comm/process_state.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <thread>

namespace lockstep::comm {
namespace {

// What a process says of itself. Plain bytes; texts that are too long are cut, at the same place
// everywhere.
struct Card {
  std::array<char, 200> host = {};
  std::array<char, 33> nonce = {};
};

template <std::size_t size>
void set(std::array<char, size>& field, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), size - 1), field.begin());
}

// Waits for transfers, one per rank of the port (null: nothing to wait for).
void wait_for(std::vector<std::unique_ptr<Port::Transfer>>& transfers,
              std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    std::vector<int> missing;
    for (std::size_t r = 0; r < transfers.size(); ++r) {
      if (transfers[r] != nullptr && !transfers[r]->done()) {
        missing.push_back(static_cast<int>(r));
      }
    }
    if (missing.empty()) {
      return;
    }
    if (std::chrono::steady_clock::now() > end) {
      throw TimedOut("rendezvous over the network: " + list_of_ranks(missing) +
                     " did not answer within the deadline of " + std::to_string(deadline.count()) +
                     " ms");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

int Acquaintance::hosts() const {
  return host_of.empty() ? 0 : *std::ranges::max_element(host_of) + 1;
}

Acquaintance meet_over(Port& port, int channel, const std::string& host,
                       std::chrono::milliseconds deadline) {
  std::vector<Card> cards(static_cast<std::size_t>(port.size()));
  Card& own = cards[static_cast<std::size_t>(port.rank())];
  set(own.host, host);
  set(own.nonce, random_nonce());
  std::vector<std::unique_ptr<Port::Transfer>> sends(cards.size());
  std::vector<std::unique_ptr<Port::Transfer>> receives(cards.size());
  for (std::size_t r = 0; r < cards.size(); ++r) {
    if (static_cast<int>(r) != port.rank()) {
      const int peer = static_cast<int>(r);
      receives[r] = port.receive(peer, channel, std::as_writable_bytes(std::span(&cards[r], 1)));
      sends[r] = port.send(peer, channel, std::as_bytes(std::span(&own, 1)));
    }
  }
  try {
    wait_for(receives, deadline);
    wait_for(sends, deadline);
  } catch (...) {
    for (const auto& receive : receives) {
      if (receive != nullptr) {
        receive->cancel();
      }
    }
    port.abandon();
    throw;
  }
  Acquaintance result;
  std::vector<std::string> hosts;
  for (const Card& card : cards) {
    const std::string name = card.host.data();
    const auto known = std::ranges::find(hosts, name);
    result.host_of.push_back(static_cast<int>(known - hosts.begin()));
    if (known == hosts.end()) {
      hosts.push_back(name);
    }
  }
  result.job = cards[0].nonce.data();
  return result;
}

std::string host_identity() { return host_name() + "/" + boot_id(); }

}  // namespace lockstep::comm
