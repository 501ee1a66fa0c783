#include "parallel/unit_order.h"

#include "comm/together.h"
#include "lockstep/error.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace lockstep::parallel {
namespace {

using Passes = std::vector<std::string>;
using Leaves = std::vector<Passes>;

// Text of one rank: a line per pass, an empty one behind each leaf.
Leaves leaves_in(const std::string& text) {
  Leaves leaves;
  Passes passes;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      leaves.push_back(std::exchange(passes, {}));
    } else {
      passes.push_back(line);
    }
  }
  return leaves;
}

const Passes& leaf_of(const Leaves& leaves, std::size_t leaf) {
  static const Passes nothing;
  return leaf < leaves.size() ? leaves[leaf] : nothing;
}

// Two ranks that used units in one leaf, in different orders.
struct Divergence {
  std::size_t leaf;
  std::size_t first;
  std::size_t second;
};

std::optional<Divergence> find_divergence(const std::vector<Leaves>& ranks) {
  std::size_t count = 0;
  for (const Leaves& leaves : ranks) {
    count = std::max(count, leaves.size());
  }
  for (std::size_t leaf = 0; leaf < count; ++leaf) {
    std::optional<std::size_t> first;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (leaf_of(ranks[rank], leaf).empty()) {
        continue;
      }
      first = first.value_or(rank);
      if (leaf_of(ranks[rank], leaf) != leaf_of(ranks[*first], leaf)) {
        return Divergence{leaf, *first, rank};
      }
    }
  }
  return std::nullopt;
}

std::string pass_at(const Passes& passes, std::size_t position) {
  return position < passes.size() ? passes[position] : "no further unit";
}

}  // namespace

void UnitOrder::note(const std::string& unit, Pass pass) {
  leaves_.back().push_back((pass == Pass::forward ? "forward of '" : "backward of '") + unit + "'");
}

void UnitOrder::end_leaf() { leaves_.emplace_back(); }

void UnitOrder::forget() { leaves_.assign(1, {}); }

std::string UnitOrder::text() const {
  std::string text;
  for (const Leaf& leaf : leaves_) {
    for (const std::string& pass : leaf) {
      text += pass + "\n";
    }
    text += "\n";
  }
  return text;
}

std::uint32_t UnitOrder::digest() const {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char letter : text()) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  }
  return hash;
}

void UnitOrder::verify(Group& group) const {
  std::vector<Leaves> ranks;
  for (const std::string& one : comm::gather_texts(group, text(), "order of units")) {
    ranks.push_back(leaves_in(one));
  }
  const auto found = find_divergence(ranks);
  if (!found) {
    return;
  }
  const Passes& before = leaf_of(before_, found->leaf);
  auto [kept, left] = std::pair(found->first, found->second);
  if (leaf_of(ranks[left], found->leaf) == before) {
    std::swap(kept, left);
  }
  const Passes& one = leaf_of(ranks[kept], found->leaf);
  const Passes& other = leaf_of(ranks[left], found->leaf);
  const auto position =
      static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
  throw Mismatch("ranks use units in different orders: in micro-batch " +
                 std::to_string(found->leaf) + " of the step, pass " + std::to_string(position) +
                 " is " + pass_at(one, position) + " on rank " + std::to_string(kept) +
                 (one == before ? ", as in the step before, but " : ", but ") +
                 pass_at(other, position) + " on rank " + std::to_string(left) +
                 "; take the same way through the module on every rank, or use Reshard::never "
                 "(--reshard never) on one host");
}

void UnitOrder::end_step() {
  before_ = std::move(leaves_);
  forget();
}

}  // namespace lockstep::parallel
