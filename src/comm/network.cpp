#include "comm/network.h"

#include "lockstep/error.h"

#include <numeric>
#include <string>

namespace lockstep::comm {
namespace {

// A group's: its control words, its collectives, its messages between two ranks.
constexpr int kChannels = MirroredControl::kChannels + 2;

}  // namespace

Network::Network(std::shared_ptr<Port> port)
    : port_(std::move(port)),
      members_(static_cast<std::size_t>(port_->size())),
      free_channel_(std::make_shared<int>(kChannels)) {
  std::iota(members_.begin(), members_.end(), 0);
}

Network::Network(const Network& whole, std::vector<int> members, int first_channel)
    : port_(whole.port_),
      members_(std::move(members)),
      first_channel_(first_channel),
      free_channel_(whole.free_channel_) {
  *free_channel_ = first_channel + kChannels;
}

Network Network::part(const std::vector<int>& ranks, int channel) const {
  if (channel + kChannels > Port::kMostChannels) {
    throw UsageError("a network has channels for " +
                     std::to_string(Port::kMostChannels / kChannels) +
                     " groups of a process, and all have been given out; make groups once and keep "
                     "them");
  }
  std::vector<int> members;
  for (const int rank : ranks) {
    members.push_back(members_.at(static_cast<std::size_t>(rank)));
  }
  return {*this, std::move(members), channel};
}

}  // namespace lockstep::comm
