#include "plan/collective_cost.h"

#include "lockstep/error.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

namespace lockstep::plan {
namespace {

std::int64_t ceil_of(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / parts; }

int log2_floor(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
int log2_ceil(int n) { return n == 1 ? 0 : log2_floor(n - 1) + 1; }

// Adds up messages that follow each other.
class Messages {
 public:
  explicit Messages(const Network& network) : network_(network) {}

  // `times` messages of `bytes` on a link of which each rank has its own.
  void inside(std::int64_t times, std::int64_t bytes) { add(network_.inside, times, bytes, 1); }
  // The same between hosts, `flows` ranks of each host at once.
  void between(std::int64_t times, std::int64_t bytes, std::int64_t flows) {
    add(network_.between, times, bytes, flows);
  }
  // As slow as the slower of both: one flow crosses, the others stay inside.
  void everywhere(std::int64_t times, std::int64_t bytes) {
    const auto n = static_cast<double>(bytes);
    const bool crosses = network_.hosts() > 1;
    const bool slower = crosses && network_.between.seconds(n) > network_.inside.seconds(n);
    add(slower ? network_.between : network_.inside, times, bytes, 1);
  }
  const Cost& cost() const { return cost_; }

 private:
  void add(const Link& link, std::int64_t times, std::int64_t bytes, std::int64_t flows) {
    cost_.steps += times;
    cost_.sent_bytes += times * bytes;
    cost_.seconds += static_cast<double>(times) *
                     link.seconds(static_cast<double>(bytes) * static_cast<double>(flows));
  }

  const Network& network_;
  Cost cost_;
};

// One half of an all_reduce over vectors of n bytes.
struct Half {
  bool reduces;
  std::int64_t leaf;  // n of leaves and results
  std::int64_t sum;   // n of partial sums, or of results in the second half
};

Cost direct(const Half& half, const Network& network) {
  Messages messages(network);
  const std::int64_t block = ceil_of(half.leaf, network.ranks);
  messages.inside(1, (network.ranks - 1) * block);
  return messages.cost();
}

Cost pairwise(const Half& half, const Network& network) {
  Messages messages(network);
  const std::int64_t block = ceil_of(half.leaf, network.ranks);
  const int near = std::min(network.ranks, network.ranks_per_host);
  messages.inside(near - 1, block);
  messages.between(network.ranks - near, block, near);
  return messages.cost();
}

Cost ring(const Half& half, const Network& network) {
  Messages messages(network);
  messages.everywhere(network.ranks - 1, ceil_of(half.sum, network.ranks));
  return messages.cost();
}

Cost halving_doubling(const Half& half, const Network& network) {
  Messages messages(network);
  const int levels = log2_floor(network.ranks);
  const int near = std::min(levels, log2_floor(network.ranks_per_host));
  if (network.ranks != 1 << levels) {
    // The rank without a partner of its own hands in its leaves, or is handed the result.
    network.hosts() > 1 ? messages.between(1, half.leaf, network.ranks_per_host)
                        : messages.inside(1, half.leaf);
  }
  for (int level = 0; level < levels; ++level) {
    const std::int64_t whole = half.reduces && level == 0 ? half.leaf : half.sum;
    const std::int64_t bytes = ceil_of(whole, std::int64_t{2} << level);
    level < near ? messages.inside(1, bytes) : messages.between(1, bytes, network.ranks_per_host);
  }
  return messages.cost();
}

Cost tree(const Half& half, const Network& network) {
  Messages messages(network);
  messages.inside(log2_ceil(std::min(network.ranks, network.ranks_per_host)), half.sum);
  messages.between(log2_ceil(network.hosts()), half.sum, 1);
  return messages.cost();
}

Cost hierarchical(const Half& half, const Network& network) {
  Messages messages(network);
  const int near = network.ranks_per_host;
  const std::int64_t part = ceil_of(half.sum, near);
  messages.inside(1, (near - 1) * ceil_of(half.leaf, near));
  messages.between(network.hosts() - 1, ceil_of(part, network.hosts()), near);
  return messages.cost();
}

Cost coordinator(const Half& half, const Network& network) {
  Messages messages(network);
  const int near = std::min(network.ranks, network.ranks_per_host);
  messages.inside(near - 1, half.leaf);
  messages.between(network.ranks - near, half.leaf, 1);
  return messages.cost();
}

Cost cost_of(Algorithm algorithm, const Half& half, const Network& network) {
  switch (algorithm) {
    case Algorithm::direct:
      return direct(half, network);
    case Algorithm::pairwise:
      return pairwise(half, network);
    case Algorithm::ring:
      return ring(half, network);
    case Algorithm::halving_doubling:
      return halving_doubling(half, network);
    case Algorithm::tree:
      return tree(half, network);
    case Algorithm::hierarchical:
      return hierarchical(half, network);
    case Algorithm::coordinator:
      return coordinator(half, network);
    case Algorithm::automatic:
    case Algorithm::native:
      break;
  }
  throw UsageError("algorithm " + std::string(name_of(algorithm)) +
                   " has no price; plan with one of the others");
}

Cost operator+(const Cost& a, const Cost& b) {
  return {a.seconds + b.seconds, a.steps + b.steps, a.sent_bytes + b.sent_bytes};
}

}  // namespace

std::optional<Cost> cost_of(Collective collective, Algorithm algorithm, const Payload& payload,
                            const Network& network) {
  const bool one_host = network.hosts() == 1;
  const bool on_root = algorithm == Algorithm::tree || algorithm == Algorithm::coordinator;
  if ((on_root && collective != Collective::all_reduce) ||
      (algorithm == Algorithm::direct && !one_host) ||
      (algorithm == Algorithm::hierarchical && one_host)) {
    return std::nullopt;
  }
  if (network.ranks == 1) {
    return Cost{};
  }
  const Half reduces{true, payload.leaf_bytes, payload.sum_bytes};
  const Half spreads{false, payload.leaf_bytes, payload.leaf_bytes};
  switch (collective) {
    case Collective::reduce_scatter:
      return cost_of(algorithm, reduces, network);
    case Collective::all_gather:
      return cost_of(algorithm, spreads, network);
    case Collective::all_reduce:
      break;
  }
  return cost_of(algorithm, reduces, network) + cost_of(algorithm, spreads, network);
}

Algorithm quickest(Collective collective, const Payload& payload, const Network& network) {
  Algorithm best = Algorithm::pairwise;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : kPlannedAlgorithms) {
    const auto cost = cost_of(collective, algorithm, payload, network);
    if (algorithm != Algorithm::coordinator && cost && cost->seconds < least) {
      best = algorithm;
      least = cost->seconds;
    }
  }
  return best;
}

}  // namespace lockstep::plan
