// The hosts of a job and how many ranks each gets, as --hosts names them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::launch {

struct HostRanks {
  std::string host;  // a name or an IPv4 address
  int ranks = 1;

  bool operator==(const HostRanks&) const = default;
};

// What `text` says: "a:2,b:2", "a,b", or, where it holds a slash, the file of that path with a host
// on each line ("a", "a:2" or, as mpirun has it, "a slots=2"; "#" begins a comment). Either every
// host has its slots, or none has and each gets the same share of `ranks` (nullopt: one each). Rank
// 0 and the following are the first host's. Throws UsageError where that is not so, where a host
// stands twice, and where slots and `ranks` disagree.
std::vector<HostRanks> hosts_of(const std::string& text, std::optional<int> ranks);

int ranks_on(std::span<const HostRanks> hosts);

// Throws UsageError naming the first host that this one finds no address of.
void require_known(std::span<const HostRanks> hosts);

}  // namespace lockstep::launch
