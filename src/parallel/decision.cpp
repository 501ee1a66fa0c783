#include "parallel/decision.h"

#include <cmath>
#include <limits>

namespace lockstep::parallel {

namespace {

// Of P numbers h, P·Σh² − (Σh)² is the sum of (h − h')² over all pairs: 0 where all are equal. On
// every rank alike, and of two 32-bit numbers without error (wrapped at 64 bits, as sums do).
bool all_equal(std::int64_t sum, std::int64_t squares, int ranks) {
  const auto total = static_cast<std::uint64_t>(sum);
  return static_cast<std::uint64_t>(ranks) * static_cast<std::uint64_t>(squares) == total * total;
}

}  // namespace

Decision decide(Group& group, const optim::SquareSum& squares, const std::vector<bool>& arrived,
                std::optional<std::uint32_t> order) {
  constexpr auto kDigits = static_cast<std::size_t>(optim::ExactSum::kDigits);
  const auto digits = squares.sum.digits();
  // [the norm's digits | ranks with a non-finite gradient | ranks with a gradient, per parameter |
  //  sum of the orders' digests | sum of their squares]
  std::vector<std::int64_t> payload(digits.begin(), digits.end());
  payload.push_back(squares.all_finite ? 0 : 1);
  payload.insert(payload.end(), arrived.begin(), arrived.end());
  if (order) {
    const auto digest = static_cast<std::uint64_t>(*order);
    payload.push_back(static_cast<std::int64_t>(digest));
    payload.push_back(static_cast<std::int64_t>(digest * digest));
  }
  group.all_reduce(std::span(payload), {.name = "norm and presence"}).wait();

  Decision decision;
  decision.all_finite = payload[kDigits] == 0;
  const auto sum = optim::ExactSum::from_digits(std::span(payload).first(kDigits));
  decision.norm =
      decision.all_finite ? std::sqrt(sum.value()) : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    decision.present.push_back(payload[kDigits + 1 + i] > 0);
  }
  if (order) {
    decision.orders_agree =
        all_equal(payload[payload.size() - 2], payload[payload.size() - 1], group.size());
  }
  return decision;
}

}  // namespace lockstep::parallel
