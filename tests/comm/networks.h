// Ranks as threads of the test that share no memory: groups over a network of ports.
#pragma once

#include "comm/formation.h"
#include "comm/network.h"
#include "comm/thread_port.h"
#include "comm/worlds.h"

#include <chrono>
#include <functional>
#include <vector>

namespace lockstep::test {

inline std::vector<Group> groups_on_a_network(int ranks, const GroupOptions& options) {
  std::vector<Group> groups;
  const auto ports = comm::ports_of_threads(ranks);
  for (int r = 0; r < ranks; ++r) {
    groups.emplace_back(
        comm::form_network_group(comm::Network(ports[static_cast<std::size_t>(r)]), r, options));
  }
  return groups;
}

inline void on_network(int ranks, const std::function<void(Group&)>& body) {
  auto groups = groups_on_a_network(ranks, {.deadline = std::chrono::seconds(60)});
  on_ranks(groups, body);
}

}  // namespace lockstep::test
