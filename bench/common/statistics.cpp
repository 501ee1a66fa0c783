#include "bench/common/statistics.h"

#include "base/invariant.h"

#include <algorithm>

namespace lockstep::bench {

Spread spread_of(std::vector<double> samples) {
  LOCKSTEP_INVARIANT(samples.size(), >, 0u);
  std::ranges::sort(samples);
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back()};
}

std::vector<double> ratios(const std::vector<double>& numerators,
                           const std::vector<double>& denominators) {
  LOCKSTEP_INVARIANT(numerators.size(), ==, denominators.size());
  std::vector<double> result;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    result.push_back(numerators[i] / denominators[i]);
  }
  return result;
}

}  // namespace lockstep::bench
