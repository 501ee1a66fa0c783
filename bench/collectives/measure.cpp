#include "bench/collectives/measure.h"

#include "bench/collectives/oracle.h"
#include "bench/common/statistics.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_of(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Of each repeat the slowest rank's time.
std::vector<double> slowest(Group& group, std::vector<double> mine) {
  group.all_reduce(Span(std::span(mine)), {.op = ReduceOp::max}).wait();
  return mine;
}

// So many that they take about half a second, and enough for a median; the same on every rank.
std::int64_t choose_repeats(Group& group, double ms_of_one) {
  constexpr double kBudget_ms = 500;
  std::int64_t repeats = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(kBudget_ms / std::max(ms_of_one, 1e-3)), 21, 2001);
  group.broadcast(Span(std::span(&repeats, 1)), 0).wait();
  return repeats;
}

Spread time(Group& group, std::int64_t buffers, const std::function<void(std::int64_t)>& body) {
  std::int64_t next = 0;
  const auto once = [&] {
    group.barrier();
    return ms_of([&] { body(next++ % buffers); });
  };
  double ms_of_one = once();
  for (std::int64_t i = 0; i < std::max<std::int64_t>(2, buffers); ++i) {
    ms_of_one = std::min(ms_of_one, once());
  }
  std::vector<double> samples(static_cast<std::size_t>(choose_repeats(group, ms_of_one)));
  std::ranges::generate(samples, once);
  return spread_of(slowest(group, std::move(samples)));
}

// In pieces that stay below libc's threshold for streaming stores: the collectives use plain ones.
void copy_half(std::span<std::byte> bytes) {
  constexpr std::size_t kPiece = 128 << 10;
  const std::size_t half = bytes.size() / 2;
  for (std::size_t at = 0; at < half; at += kPiece) {
    std::memcpy(bytes.data() + half + at, bytes.data() + at, std::min(kPiece, half - at));
  }
}

void verify_all(Group& group, Buffers& buffers, std::int64_t count, const Question& question) {
  for (std::int64_t i = 0; i < count; ++i) {
    fill(buffers.bytes(i), question.dtype, group.rank());
    group.barrier();  // nobody reads what a rank has not filled
    buffers.run(i);
    verify(buffers.bytes(i), group.rank(),
           {.collective = question.collective,
            .dtype = question.dtype,
            .ranks = group.size(),
            .algorithm = question.algorithm});
  }
  group.barrier();
}

}  // namespace

double floor_bytes(Collective collective, std::int64_t bytes, int ranks) {
  const auto whole = static_cast<double>(bytes);
  switch (collective) {
    case Collective::all_reduce:
      return 2 * whole;
    case Collective::reduce_scatter:
      return whole + whole / ranks;
    case Collective::all_gather:
      return whole;
  }
  return 0;
}

Answer measure(Group& group, const Question& question, std::int64_t cache_bytes) {
  const std::int64_t count = rotation(question.bytes, group.size(), cache_bytes);
  const auto buffers = make_buffers(group, question, count);
  verify_all(group, *buffers, count, question);
  const Spread times = time(group, count, [&](std::int64_t buffer) { buffers->run(buffer); });
  const Spread copies =
      time(group, count, [&](std::int64_t buffer) { copy_half(buffers->bytes(buffer)); });
  const auto whole = static_cast<double>(question.bytes);  // half of it read, half written
  const double floor_ms =
      floor_bytes(question.collective, question.bytes, group.size()) / whole * copies.median;
  return {.question = question,
          .ms = times.median,
          .least_ms = times.least,
          .gb_per_s = whole / times.median / 1e6,
          .floor_share = floor_ms / times.median};
}

}  // namespace lockstep::bench
