#include "bench/common/table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace lockstep::bench {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths.at(column) = std::max(widths.at(column), row[column].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      text += column == 0 ? row[column] + padding : "  " + padding + row[column];
    }
    text += "\n";
  }
  return text;
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

}  // namespace lockstep::bench
