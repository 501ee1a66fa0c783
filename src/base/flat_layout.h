// Where the members of a flat parameter lie (design: "Vocabulary"): end to end, each starting on
// kGranule elements, the whole padded to ranks × kGranule so that every shard has equal size.
#pragma once

#include "base/range.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

class FlatLayout {
 public:
  FlatLayout() = default;
  // `sizes`: elements of each member in order (0 is legal). `ranks` ≥ 1.
  FlatLayout(std::span<const std::int64_t> sizes, int ranks);

  std::int64_t size() const { return size_; }  // elements, padding included
  int ranks() const { return ranks_; }
  std::size_t members() const { return members_.size(); }
  // Elements of member i, without the padding behind it.
  Range member(std::size_t i) const { return members_.at(i); }
  // The equal, granule-aligned part that `rank` owns.
  Range shard(int rank) const;
  // Padding elements: size() less the members' elements.
  std::int64_t padding() const;

 private:
  std::vector<Range> members_;
  std::int64_t size_ = 0;
  int ranks_ = 1;
};

}  // namespace lockstep
