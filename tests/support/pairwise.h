// Covering sets: few configurations in which every two values of different factors meet.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::test {

// A factor and one of its values.
using Level = std::pair<std::size_t, std::size_t>;

class PairwiseSet {
 public:
  // How many values each factor has.
  explicit PairwiseSet(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)) {
    for (std::size_t a = 0; a < sizes_.size(); ++a) {
      for (std::size_t b = a + 1; b < sizes_.size(); ++b) {
        for (std::size_t x = 0; x < sizes_[a]; ++x) {
          for (std::size_t y = 0; y < sizes_[b]; ++y) {
            open_.insert({{a, x}, {b, y}});
          }
        }
      }
    }
    while (!open_.empty()) {
      rows_.push_back(next_row());
    }
  }

  // Per configuration the number of each factor's value.
  const std::vector<std::vector<std::size_t>>& rows() const { return rows_; }

 private:
  // Begins with a pair that has not met yet; each further factor takes the value that has most new
  // ones with those chosen.
  std::vector<std::size_t> next_row() {
    std::vector<Level> chosen{open_.begin()->first, open_.begin()->second};
    for (std::size_t factor = 0; factor < sizes_.size(); ++factor) {
      if (factor != chosen[0].first && factor != chosen[1].first) {
        chosen.emplace_back(factor, best_value(factor, chosen));
      }
    }
    std::vector<std::size_t> row(sizes_.size());
    for (const Level& a : chosen) {
      row[a.first] = a.second;
      for (const Level& b : chosen) {
        open_.erase({a, b});
      }
    }
    return row;
  }

  std::size_t best_value(std::size_t factor, const std::vector<Level>& chosen) const {
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t value = 0; value < sizes_[factor]; ++value) {
      std::size_t meets = 0;
      for (const Level& other : chosen) {
        const Level own{factor, value};
        meets += open_.count(own < other ? std::pair(own, other) : std::pair(other, own));
      }
      if (meets > most) {
        best = value;
        most = meets;
      }
    }
    return best;
  }

  std::vector<std::size_t> sizes_;
  std::set<std::pair<Level, Level>> open_;  // the lower factor first
  std::vector<std::vector<std::size_t>> rows_;
};

}  // namespace lockstep::test
