// The ranks of a group that share no memory: where each is found, and which channels are theirs.
#pragma once

#include "comm/mirrored_control.h"
#include "comm/port.h"

#include <memory>
#include <vector>

namespace lockstep::comm {

class Network {
 public:
  // All processes of a port, which has no other groups.
  explicit Network(std::shared_ptr<Port> port);

  const std::shared_ptr<Port>& port() const { return port_; }
  // The group's ranks as the port numbers them.
  const std::vector<int>& members() const { return members_; }
  int control_channel() const { return first_channel_; }
  int collective_channel() const { return first_channel_ + MirroredControl::kChannels; }
  int pair_channel() const { return collective_channel() + 1; }

  // The first channel that no group of this process has yet.
  int free_channel() const { return *free_channel_; }
  // Some of the ranks, by their numbers in this group, on channels from `channel`, which is free on
  // all of them. Throws UsageError when there are too many groups.
  Network part(const std::vector<int>& ranks, int channel) const;

 private:
  Network(const Network& whole, std::vector<int> members, int first_channel);

  std::shared_ptr<Port> port_;
  std::vector<int> members_;
  int first_channel_ = 0;
  std::shared_ptr<int> free_channel_;  // of this process, for all groups
};

}  // namespace lockstep::comm
