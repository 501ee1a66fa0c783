#include "data/merges.h"

#include "base/invariant.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

namespace lockstep::data {
namespace {

// Up to here looking at every pair each time is faster than a queue.
constexpr std::size_t kShort = 32;

// Moves what is behind `at` one to the left.
template <class T>
void close_gap(std::span<T> values, std::size_t at) {
  const auto behind = values.subspan(at + 1);
  std::ranges::copy(behind, values.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

Merges::Merges(std::span<const Merge> merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(2, 2 * merges.size()))),
      shift_(64 - std::countr_zero(slots_.size())) {
  LOCKSTEP_INVARIANT(merges.size(), <, std::size_t{kNoRank});
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, {rank, merge.merged}};
  }
}

// The slot of the pair, or the free one where it would be.
std::size_t Merges::slot_of(TokenId left, TokenId right) const {
  const std::uint64_t pair = std::uint64_t{left} << 32 | right;
  std::size_t slot = (pair * 0x9e3779b97f4a7c15u) >> shift_;
  while (slots_[slot].found.rank != kNoRank &&
         (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

std::size_t Merges::apply(std::span<TokenId> ids) const {
  return ids.size() <= kShort ? apply_short(ids) : apply_long(ids);
}

std::size_t Merges::apply_short(std::span<TokenId> ids) const {
  std::array<Found, kShort> pairs;  // of an id and the one behind it
  std::size_t count = ids.size();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    pairs[i] = find(ids[i], ids[i + 1]);
  }
  while (count > 1) {
    const auto open = std::span(pairs).first(count - 1);
    const auto best = std::ranges::min_element(open, {}, &Found::rank);
    if (best->rank == kNoRank) {
      break;
    }
    const auto at = static_cast<std::size_t>(best - open.begin());
    ids[at] = pairs[at].merged;
    close_gap(ids.first(count), at + 1);
    close_gap(open, at);
    --count;
    if (at + 1 < count) {
      pairs[at] = find(ids[at], ids[at + 1]);
    }
    if (at > 0) {
      pairs[at - 1] = find(ids[at - 1], ids[at]);
    }
  }
  return count;
}

// The ids that are left, each knowing its neighbours, and the pairs that may join, lowest rank and
// then leftmost first.
class Merges::Chain {
 public:
  Chain(const Merges& merges, std::span<TokenId> ids)
      : merges_(merges), ids_(ids), next_(ids.size()), previous_(ids.size()) {
    std::vector<std::uint64_t> pairs;
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      next_[i] = i + 1;
      previous_[i] = i == 0 ? kGone : i - 1;
    }
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      const Found found = pair_at(i);
      if (found.rank != kNoRank) {
        pairs.push_back(std::uint64_t{found.rank} << 32 | i);
      }
    }
    waiting_ = Queue(std::greater<std::uint64_t>(), std::move(pairs));
  }

  void join_all() {
    while (!waiting_.empty()) {
      const auto rank = static_cast<std::uint32_t>(waiting_.top() >> 32);
      const auto at = static_cast<std::uint32_t>(waiting_.top());
      waiting_.pop();
      // A pair that has changed since it was queued has another rank or none.
      if (const Found found = pair_at(at); found.rank == rank) {
        join(at, found.merged);
      }
    }
  }

  // Moves what is left to the front; returns how many they are.
  std::size_t gather() {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < ids_.size(); i = next_[i]) {
      ids_[count++] = ids_[i];
    }
    return count;
  }

 private:
  static constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();
  using Queue =
      std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<std::uint64_t>>;

  // Of the id at `at` and the one behind it; no rank where one of them is not there any more.
  Found pair_at(std::uint32_t at) const {
    return next_[at] >= ids_.size() ? Found{} : merges_.find(ids_[at], ids_[next_[at]]);
  }

  void queue(std::uint32_t at) {
    if (const Found found = pair_at(at); found.rank != kNoRank) {
      waiting_.push(std::uint64_t{found.rank} << 32 | at);
    }
  }

  void join(std::uint32_t at, TokenId merged) {
    const std::uint32_t gone = next_[at];
    const std::uint32_t behind = next_[gone];
    ids_[at] = merged;
    next_[at] = behind;
    next_[gone] = kGone;
    if (behind < ids_.size()) {
      previous_[behind] = at;
    }
    queue(at);
    if (previous_[at] != kGone) {
      queue(previous_[at]);
    }
  }

  const Merges& merges_;
  std::span<TokenId> ids_;
  std::vector<std::uint32_t> next_;  // ids_.size() behind the last one, kGone of what has joined
  std::vector<std::uint32_t> previous_;
  Queue waiting_;
};

std::size_t Merges::apply_long(std::span<TokenId> ids) const {
  LOCKSTEP_INVARIANT(ids.size(), <, std::size_t{kNoRank});
  Chain chain(*this, ids);
  chain.join_all();
  return chain.gather();
}

}  // namespace lockstep::data
