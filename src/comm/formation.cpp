#include "comm/formation.h"

#include "base/range.h"
#include "comm/memory_limits.h"
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
};

// What every rank said, in rank order. Its agreement also brings all ranks here.
std::vector<Member> gather_members(Communicator& group, int color, int key) {
  Fingerprint fingerprint;
  fingerprint.kind = Kind::split;
  fingerprint.algorithm = Algorithm::small;
  const std::array<std::int32_t, 2> own{color, key};
  std::vector<std::int32_t> all(2 * static_cast<std::size_t>(group.size()));
  const auto operation = std::make_shared<SmallAllGather>(
      fingerprint, group.control(), Span(std::span(own)), Span(std::span(all)));
  group.issue(operation).wait();
  std::vector<Member> members;
  for (std::size_t r = 0; r * 2 < all.size(); ++r) {
    members.push_back({all[2 * r], all[2 * r + 1], static_cast<int>(r)});
  }
  return members;
}

void require_deadline(const GroupOptions& options) {
  if (options.deadline <= std::chrono::milliseconds::zero()) {
    throw UsageError("group '" + options.name + "': expected a deadline above 0 ms, got " +
                     std::to_string(options.deadline.count()));
  }
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

std::shared_ptr<Segment> share_segment(Communicator& group, const Allocation& allocation) {
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
  require_deadline(formation.options);
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
        Communicator::Membership{segment, formation.meeting, formation.rank, formation.size},
        formation.options);
  };
  formation.meeting->hold(exchange);
  return group;
}

std::vector<std::shared_ptr<Communicator>> form_group_of_threads(int size,
                                                                 const GroupOptions& options) {
  require_deadline(options);
  const auto meeting = meeting_of_threads();
  const auto segment = Segment::create(Control::bytes(size));
  Control::initialise(*segment, size);
  std::vector<std::shared_ptr<Communicator>> groups;
  for (int r = 0; r < size; ++r) {
    groups.push_back(std::make_shared<Communicator>(
        Communicator::Membership{segment, meeting, r, size}, options));
  }
  return groups;
}

std::shared_ptr<SharedMemory> allocate_symmetric(Communicator& group, std::int64_t bytes,
                                                 std::string_view name) {
  const std::int64_t stride = SharedMemory::stride(bytes);
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
  std::erase_if(members, [&](const Member& member) { return member.color != color; });
  std::ranges::stable_sort(members, {}, &Member::key);
  Formation formation;
  formation.meeting = group.shared_meeting();
  formation.key = exchange_key;
  formation.size = static_cast<int>(members.size());
  formation.rank =
      static_cast<int>(std::ranges::find(members, group.rank(), &Member::rank) - members.begin());
  formation.options = group.options();
  formation.options.name += "/" + std::to_string(color);
  std::vector<int> ranks;
  std::ranges::transform(members, std::back_inserter(ranks), &Member::rank);
  formation.check = [&] { group.require_alive(ranks); };
  return within_group(group, [&] { return form_group(formation); });
}

}  // namespace lockstep::comm
