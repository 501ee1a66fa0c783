// How groups and their symmetric memory come about: the exchanges, and what is checked on the way.
#pragma once

#include "comm/communicator.h"
#include "comm/host_memory.h"
#include "comm/shared_memory.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::comm {

struct Formation {
  std::shared_ptr<Meeting> meeting;
  std::string key;  // as Exchange::key
  int rank = 0;
  int size = 1;
  GroupOptions options;
  std::function<void()> check = [] {};  // as Exchange::check
  // That brought the members together and told them the meeting's key; open while the group lives.
  std::shared_ptr<Port> port = {};
  // As Communicator::Membership has them.
  std::shared_ptr<Journal> journal = nullptr;
  std::vector<int> world_ranks = {};
};

// Collective over the members: the control segment, and each member's place in it.
std::shared_ptr<Communicator> form_group(const Formation& formation);

// Of ranks that share no memory, all of which know the network: nobody waits for anybody.
std::shared_ptr<Communicator> form_network_group(const Network& network, int rank,
                                                 const GroupOptions& options);

// All members of a group of threads at once.
std::vector<std::shared_ptr<Communicator>> form_group_of_threads(int size,
                                                                 const GroupOptions& options);

// Collective over the group (see Group). Over a network symmetric memory is this rank's part alone,
// which collectives carry to the others; host memory is refused.
std::shared_ptr<SharedMemory> allocate_symmetric(Communicator& group, std::int64_t bytes,
                                                 std::string_view name);
std::shared_ptr<HostCopy> allocate_host(Communicator& group, std::int64_t bytes,
                                        std::string_view name);
std::shared_ptr<Communicator> split(Communicator& group, int color, int key);

}  // namespace lockstep::comm
