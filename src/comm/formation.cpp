#include "comm/formation.h"

#include "base/range.h"
#include "comm/issue_scheduled.h"
#include "comm/memory_limits.h"
#include "comm/schedule.h"
#include "comm/small.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace lockstep::comm {
namespace {

// The name of a group's next exchange, different from every other group's.
std::string key_of(Communicator& group) {
  return std::to_string(group.group_id()) + "/" + std::to_string(group.next_exchange());
}

// An exchange inside a group: what ends it for good ends the group too.
template <class Function>
auto within_group(Communicator& group, Function function) {
  try {
    return function();
  } catch (const GroupError& error) {
    group.fail(failure_of(error, ""));
  }
}

std::vector<int> everybody(const Communicator& group) {
  std::vector<int> ranks(static_cast<std::size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

struct Member {
  int color = 0;
  int key = 0;
  int rank = 0;
  int channel = 0;  // of a network: the first that no group of this rank has yet
};

// An all_gather that is part of a split.
std::shared_ptr<Operation> gathering(Communicator& group, Span own, Span all) {
  Fingerprint fingerprint;
  fingerprint.kind = Kind::split;
  if (group.shares_memory()) {
    return std::make_shared<SmallAllGather>(fingerprint, group.control(), own, all);
  }
  fingerprint.algorithm = Algorithm::pairwise;
  return std::make_shared<ScheduledOperation>(
      ScheduledOperation::Call{
          fingerprint,
          schedule_of(Algorithm::pairwise,
                      {.kind = Kind::all_gather, .ranks = group.size(), .rank = group.rank()}),
          {gathered(own, all, group.rank(), group.size())}},
      group.transport(), group.rank(), group.size());
}

// What every rank said, in rank order. Its agreement also brings all ranks here.
std::vector<Member> gather_members(Communicator& group, int color, int key) {
  constexpr std::size_t kWords = 3;
  const int channel = group.network() == nullptr ? 0 : group.network()->free_channel();
  const std::array<std::int32_t, kWords> own{color, key, channel};
  std::vector<std::int32_t> all(kWords * static_cast<std::size_t>(group.size()));
  group.issue(gathering(group, Span(std::span(own)), Span(std::span(all)))).wait();
  std::vector<Member> members;
  for (std::size_t r = 0; r * kWords < all.size(); ++r) {
    const auto* words = &all[kWords * r];
    members.push_back({words[0], words[1], static_cast<int>(r), words[2]});
  }
  return members;
}

void require_options(const GroupOptions& options, int size) {
  if (options.deadline <= std::chrono::milliseconds::zero()) {
    throw UsageError("group '" + options.name + "': expected a deadline above 0 ms, got " +
                     std::to_string(options.deadline.count()));
  }
  if (!options.hosts.empty() && options.hosts.size() != static_cast<std::size_t>(size)) {
    throw UsageError("group '" + options.name + "': expected the hosts of " + std::to_string(size) +
                     " ranks, got " + std::to_string(options.hosts.size()));
  }
}

std::vector<int> hosts_of(const std::vector<Member>& members, const std::vector<int>& hosts) {
  std::vector<int> theirs;
  for (const Member& member : members) {
    if (!hosts.empty()) {
      theirs.push_back(hosts.at(static_cast<std::size_t>(member.rank)));
    }
  }
  return theirs;
}

// A segment that a group allocates together.
struct Allocation {
  Kind kind;
  std::string_view name;
  std::string_view what;                          // for errors
  std::int64_t asked;                             // by the caller, the same on all ranks
  std::int64_t bytes;                             // of the segment
  std::pair<std::int64_t, std::int64_t> reserve;  // by this rank
};

// All ranks ask for the same; returns what it is called in errors.
std::string agree_on(Communicator& group, const Allocation& allocation) {
  const std::string what = std::string(allocation.what) + " '" + std::string(allocation.name) + "'";
  if (allocation.asked < 0) {
    throw UsageError(what + ": expected a size of at least 0 bytes, got " +
                     std::to_string(allocation.asked));
  }
  Fingerprint fingerprint;
  fingerprint.kind = allocation.kind;
  fingerprint.set_name(allocation.name);
  fingerprint.add({0, 0, allocation.asked, Dtype::u8});
  group.issue(std::make_shared<Meet>(fingerprint)).wait();
  return what;
}

int ranks_on_this_host(const Communicator& group) {
  const auto& hosts = group.options().hosts;
  if (hosts.empty()) {
    return group.size();
  }
  return static_cast<int>(std::ranges::count(hosts, hosts[static_cast<std::size_t>(group.rank())]));
}

std::shared_ptr<Segment> share_segment(Communicator& group, const Allocation& allocation) {
  const std::string what = agree_on(group, allocation);
  Exchange exchange;
  exchange.key = key_of(group);
  exchange.what = what;
  exchange.rank = group.rank();
  exchange.size = group.size();
  exchange.bytes = allocation.bytes;
  exchange.deadline = group.options().deadline;
  exchange.check = [&] { group.require_alive(everybody(group)); };
  exchange.before_create = [&] { require_memory(exchange.bytes, what); };
  exchange.prepare = [&](const std::shared_ptr<Segment>& segment) {
    const auto [begin, end] = allocation.reserve;
    if (end > begin) {
      segment->reserve(begin, end - begin);
    }
  };
  return within_group(group, [&] { return group.meeting().hold(exchange); });
}

}  // namespace

std::shared_ptr<Communicator> form_group(const Formation& formation) {
  require_options(formation.options, formation.size);
  std::shared_ptr<Communicator> group;
  Exchange exchange;
  exchange.key = formation.key;
  exchange.what = "rendezvous of group '" + formation.options.name + "'";
  exchange.rank = formation.rank;
  exchange.size = formation.size;
  exchange.bytes = Control::bytes(formation.size);
  exchange.deadline = formation.options.deadline;
  exchange.check = formation.check;
  exchange.initialise = [&](Segment& segment) { Control::initialise(segment, formation.size); };
  exchange.prepare = [&](const std::shared_ptr<Segment>& segment) {
    group = std::make_shared<Communicator>(
        Communicator::Membership{.segment = segment,
                                 .meeting = formation.meeting,
                                 .rank = formation.rank,
                                 .size = formation.size,
                                 .network = {},
                                 .port = formation.port,
                                 .journal = formation.journal,
                                 .world_ranks = formation.world_ranks},
        formation.options);
  };
  formation.meeting->hold(exchange);
  return group;
}

std::shared_ptr<Communicator> form_network_group(const Network& network, int rank,
                                                 const GroupOptions& options) {
  const int size = static_cast<int>(network.members().size());
  require_options(options, size);
  const auto segment = Segment::create(Control::bytes(size));
  Control::initialise(*segment, size);
  return std::make_shared<Communicator>(
      Communicator::Membership{segment, meeting_of_one(), rank, size,
                               std::make_shared<Network>(network), network.port()},
      options);
}

std::vector<std::shared_ptr<Communicator>> form_group_of_threads(int size,
                                                                 const GroupOptions& options) {
  require_options(options, size);
  const auto meeting = meeting_of_threads();
  const auto segment = Segment::create(Control::bytes(size));
  Control::initialise(*segment, size);
  std::vector<std::shared_ptr<Communicator>> groups;
  for (int r = 0; r < size; ++r) {
    groups.push_back(std::make_shared<Communicator>(
        Communicator::Membership{.segment = segment, .meeting = meeting, .rank = r, .size = size},
        options));
  }
  return groups;
}

namespace {

// This rank's part of symmetric memory that nobody else sees. What it fails with ends the group,
// since the others have theirs.
std::shared_ptr<SharedMemory> allocate_own(Communicator& group, std::int64_t bytes,
                                           std::string_view name) {
  const std::int64_t stride = SharedMemory::stride(bytes);
  const std::string what = agree_on(group, {.kind = Kind::allocate_symmetric,
                                            .name = name,
                                            .what = "symmetric memory",
                                            .asked = bytes,
                                            .bytes = stride,
                                            .reserve = {0, stride}});
  try {
    require_memory(stride * ranks_on_this_host(group), what);
    const auto segment = Segment::create(stride);
    segment->reserve(0, stride);
    segment->populate();
    return std::make_shared<SharedMemory>(
        SharedMemory::Description{group.group_id(), group.next_allocation(), 0, bytes,
                                  std::string(name), group.weak_from_this()},
        segment);
  } catch (const SystemError& error) {
    group.fail(
        {Failure::Kind::system, -1, "rank " + std::to_string(group.rank()) + ": " + error.what()});
  }
}

}  // namespace

std::shared_ptr<SharedMemory> allocate_symmetric(Communicator& group, std::int64_t bytes,
                                                 std::string_view name) {
  const std::int64_t stride = SharedMemory::stride(bytes);
  if (!group.shares_memory()) {
    return allocate_own(group, bytes, name);
  }
  const auto segment =
      share_segment(group, {.kind = Kind::allocate_symmetric,
                            .name = name,
                            .what = "symmetric memory",
                            .asked = bytes,
                            .bytes = stride * group.size(),
                            .reserve = {group.rank() * stride, (group.rank() + 1) * stride}});
  segment->populate();
  return std::make_shared<SharedMemory>(
      SharedMemory::Description{group.group_id(), group.next_allocation(), group.rank(), bytes,
                                std::string(name), group.weak_from_this()},
      segment);
}

std::shared_ptr<HostCopy> allocate_host(Communicator& group, std::int64_t bytes,
                                        std::string_view name) {
  if (!group.shares_memory() && group.size() > 1) {
    throw UsageError("host memory '" + std::string(name) + "': the ranks of group '" +
                     group.options().name +
                     "' talk over the network, where no two share memory: stage zero3 and "
                     "share_parameters need all ranks on one host; use zero2, or leave MPI out");
  }
  const std::int64_t whole = SharedMemory::stride(bytes);
  const auto segment =
      share_segment(group, {.kind = Kind::allocate_host,
                            .name = name,
                            .what = "host memory",
                            .asked = bytes,
                            .bytes = whole,
                            .reserve = HostCopy::touched_by(group.rank(), group.size(), whole)});
  return std::make_shared<HostCopy>(segment, bytes);
}

std::shared_ptr<Communicator> split(Communicator& group, int color, int key) {
  auto members = gather_members(group, color, key);
  const std::string exchange_key = key_of(group) + "/" + std::to_string(color);
  if (color < 0) {
    return nullptr;
  }
  const int channel = std::ranges::max(members, {}, &Member::channel).channel;
  std::erase_if(members, [&](const Member& member) { return member.color != color; });
  std::ranges::stable_sort(members, {}, &Member::key);
  std::vector<int> ranks;
  std::ranges::transform(members, std::back_inserter(ranks), &Member::rank);
  GroupOptions options = group.options();
  options.name += "/" + std::to_string(color);
  options.hosts = hosts_of(members, group.options().hosts);
  const int rank =
      static_cast<int>(std::ranges::find(members, group.rank(), &Member::rank) - members.begin());
  if (group.network() != nullptr) {
    return form_network_group(group.network()->part(ranks, channel), rank, options);
  }
  Formation formation;
  formation.meeting = group.shared_meeting();
  formation.key = exchange_key;
  formation.size = static_cast<int>(members.size());
  formation.rank = rank;
  formation.options = options;
  formation.check = [&] { group.require_alive(ranks); };
  formation.journal = group.journal();
  for (const int member : ranks) {
    formation.world_ranks.push_back(group.world_ranks()[static_cast<std::size_t>(member)]);
  }
  return within_group(group, [&] { return form_group(formation); });
}

}  // namespace lockstep::comm
