#include "parallel/decision.h"

#include <cmath>
#include <limits>

namespace lockstep::parallel {

Decision decide(Group& group, const optim::SquareSum& squares, const std::vector<bool>& arrived) {
  constexpr auto kDigits = static_cast<std::size_t>(optim::ExactSum::kDigits);
  const auto digits = squares.sum.digits();
  // [the norm's digits | ranks with a non-finite gradient | ranks with a gradient, per parameter]
  std::vector<std::int64_t> payload(digits.begin(), digits.end());
  payload.push_back(squares.all_finite ? 0 : 1);
  payload.insert(payload.end(), arrived.begin(), arrived.end());
  group.all_reduce(std::span(payload), {.name = "norm and presence"}).wait();

  Decision decision;
  decision.all_finite = payload[kDigits] == 0;
  const auto sum = optim::ExactSum::from_digits(std::span(payload).first(kDigits));
  decision.norm =
      decision.all_finite ? std::sqrt(sum.value()) : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = kDigits + 1; i < payload.size(); ++i) {
    decision.present.push_back(payload[i] > 0);
  }
  return decision;
}

}  // namespace lockstep::parallel
