// Text tables for terminals.
#pragma once

#include <string>
#include <vector>

namespace lockstep::bench {

// Rows of equal length, the heads first: the first column to the left, the others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows);

// With so many digits behind the point.
std::string fixed(double value, int digits);

}  // namespace lockstep::bench
