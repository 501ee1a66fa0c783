#include "comm/together.h"

#include "base/invariant.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace lockstep::comm {
namespace {

// The first letter of what a rank sends; the rest is its text.
constexpr char kDone = 'd';
constexpr char kUsage = 'u';
constexpr char kFailed = 'f';

std::string outcome_of(const std::function<std::string()>& work) {
  try {
    return kDone + work();
  } catch (const UsageError& error) {
    return kUsage + std::string(error.what());
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  } catch (...) {  // the others wait for an outcome
    return kFailed + std::string("an exception that is no std::exception");
  }
}

bool failed(const std::string& outcome) { return outcome.front() != kDone; }

[[noreturn]] void throw_first(const std::vector<std::string>& outcomes) {
  const auto first = std::ranges::find_if(outcomes, failed);
  LOCKSTEP_INVARIANT(first != outcomes.end(), ==, true);
  const bool all = std::ranges::count(outcomes, *first) == std::ssize(outcomes);
  const std::string rank = std::to_string(first - outcomes.begin());
  const std::string text = (all ? "" : "rank " + rank + ": ") + first->substr(1);
  if (first->front() == kUsage) {
    throw UsageError(text);
  }
  throw Error(text);
}

}  // namespace

std::vector<std::string> gather_texts(Group& group, const std::string& mine,
                                      std::string_view name) {
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> lengths(ranks);
  std::vector<std::int64_t> length{static_cast<std::int64_t>(mine.size())};
  group.all_gather(std::span(length), std::span(lengths), {.name = name}).wait();
  const auto width = static_cast<std::size_t>(std::ranges::max(lengths));
  std::vector<std::uint8_t> block(width);
  std::ranges::copy(mine, block.begin());
  std::vector<std::uint8_t> all(width * ranks);
  group.all_gather(std::span(block), std::span(all), {.name = name}).wait();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * width);
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[rank]));
  }
  return texts;
}

std::vector<std::string> do_together(Group& group, std::string_view name,
                                     const std::function<std::string()>& work) {
  std::vector<std::string> outcomes = gather_texts(group, outcome_of(work), name);
  if (std::ranges::any_of(outcomes, failed)) {
    throw_first(outcomes);
  }
  for (std::string& outcome : outcomes) {
    outcome.erase(0, 1);
  }
  return outcomes;
}

}  // namespace lockstep::comm
