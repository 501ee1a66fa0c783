// What is told about repeated measurements.
#pragma once

#include <vector>

namespace lockstep::bench {

struct Spread {
  double median = 0;  // the mean of the two middle ones where their number is even
  double least = 0;
  double most = 0;
};

// Needs at least one sample.
Spread spread_of(std::vector<double> samples);

// Element by element; both of the same length.
std::vector<double> ratios(const std::vector<double>& numerators,
                           const std::vector<double>& denominators);

}  // namespace lockstep::bench
