#include "comm/watch.h"

#include "comm/meeting.h"

#include <algorithm>
#include <numeric>

namespace lockstep::comm {
namespace {

// How often a silent process is looked at, and the least share of a core that is computing: what
// waits in a poll of its own uses less.
constexpr std::chrono::nanoseconds kPulseEvery = std::chrono::seconds(1);
constexpr std::int64_t kLeastShare_percent = 5;

// What a failure carries to every rank (FailureRecord) is bounded.
constexpr std::size_t kMostBytes = 7000;

}  // namespace

Watch::Watch(Setting setting)
    : control_(setting.control),
      presence_(setting.presence),
      journal_(setting.journal),
      world_ranks_(std::move(setting.world_ranks)),
      deadline_(setting.deadline),
      group_name_(std::move(setting.group_name)),
      pulses_(static_cast<std::size_t>(control_.ranks())) {
  std::vector<int> all(static_cast<std::size_t>(journal_.ranks()));
  std::iota(all.begin(), all.end(), 0);
  if (world_ranks_.empty()) {
    world_ranks_ = all;
  }
  is_world_ = world_ranks_ == all;
}

bool Watch::behind(int rank, const Needs& needs) const {
  if (needs.peer >= 0) {
    return rank == needs.peer;
  }
  return rank != control_.rank() &&
         (control_.issued(rank) < needs.issued || control_.stepped(rank) < needs.stepped);
}

bool Watch::silent(int rank, const Needs& needs, std::int64_t now) {
  feel_pulse(rank, now);
  // Two that wait for each other's messages would give each other signs for ever.
  const std::int64_t seen_ns = needs.peer >= 0 ? 0 : control_.last_seen_ns(rank);
  const std::int64_t sign_ns =
      std::max({seen_ns, needs.since_ns, pulses_[static_cast<std::size_t>(rank)].sign_ns});
  return now - sign_ns > deadline_.count();
}

// A rank cannot beat while it computes: it has no thread of ours. Its process's time tells instead.
void Watch::feel_pulse(int rank, std::int64_t now) {
  Pulse& pulse = pulses_[static_cast<std::size_t>(rank)];
  const std::int64_t every = std::min(kPulseEvery, deadline_ / 8).count();
  if (presence_ == nullptr || now - pulse.sampled_ns < every) {
    return;
  }
  const pid_t process = presence_->holder(rank).process;
  const auto state = process > 0 ? state_of(process) : std::nullopt;
  if (!state) {
    return;
  }
  const std::int64_t passed_ms = (now - pulse.sampled_ns) / 1'000'000;
  const bool first = pulse.sampled_ns == 0;
  const bool used_time = (state->cpu_ms - pulse.cpu_ms) * 100 > passed_ms * kLeastShare_percent;
  const bool runs = state->activity == ProcessState::Activity::running;
  pulse.sampled_ns = now;
  pulse.cpu_ms = state->cpu_ms;
  // One that waits in another group uses a little time as well; it beats where it waits.
  const int world_rank = world_ranks_[static_cast<std::size_t>(rank)];
  if (!first && (used_time || runs) && journal_.where(world_rank).waiting_since_ns == 0) {
    pulse.sign_ns = now;
  }
}

// Over a network the word that a rank has left may overtake the message that it sent before.
bool Watch::may_have_sent(int rank, const Needs& needs, std::int64_t now) const {
  constexpr std::int64_t kArrivesWithin_ns = 200'000'000;
  return needs.peer >= 0 && now - control_.last_seen_ns(rank) < kArrivesWithin_ns;
}

std::optional<Failure> Watch::look(const Needs& needs) {
  const std::int64_t now = now_ns();
  std::vector<int> silent_ranks;
  for (int r = 0; r < control_.ranks(); ++r) {
    if (!behind(r, needs)) {
      continue;
    }
    if (control_.left(r) && may_have_sent(r, needs, now)) {
      continue;
    }
    if (control_.left(r)) {
      return lost(r, "left (its handle was destroyed; every rank must make the same calls)",
                  describe_briefly(*needs.operation));
    }
    if (dead(r)) {
      return lost(r, "died", describe_briefly(*needs.operation));
    }
    if (silent(r, needs, now)) {
      silent_ranks.push_back(r);
    }
  }
  return silent_ranks.empty() ? std::nullopt : std::optional(timed_out(needs, silent_ranks));
}

std::optional<Failure> Watch::look_for_dead(const std::vector<int>& ranks) const {
  for (const int r : ranks) {
    if (r != control_.rank() && !control_.left(r) && dead(r)) {
      return lost(r, "died", "setting up shared memory");
    }
  }
  return std::nullopt;
}

bool Watch::dead(int rank) const { return presence_ != nullptr && !presence_->holder(rank).alive; }

Failure Watch::lost(int rank, const std::string& how, const std::string& needed_for) const {
  return {Failure::Kind::peer_lost, rank,
          "group '" + group_name_ + "': rank " + std::to_string(rank) + " " + how + " while rank " +
              std::to_string(control_.rank()) + " needs it for " + needed_for + everybody({rank})};
}

Failure Watch::timed_out(const Needs& needs, const std::vector<int>& silent_ranks) const {
  const auto deadline = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_);
  return {Failure::Kind::timed_out, -1,
          "group '" + group_name_ + "': rank " + std::to_string(control_.rank()) + " waits for " +
              describe_briefly(*needs.operation) + " and " + list_of_ranks(silent_ranks) +
              (needs.peer >= 0 ? " did not do its part within the deadline of "
                               : " gave no sign of life for the deadline of ") +
              std::to_string(deadline.count()) + " ms" + everybody(silent_ranks)};
}

std::string Watch::line_of(int world_rank) const {
  const Whereabouts where = journal_.where(world_rank);
  std::string who = "rank " + std::to_string(world_rank);
  if (!is_world_) {
    const auto here = std::ranges::find(world_ranks_, world_rank);
    who = "the world's " + who;
    if (here != world_ranks_.end()) {
      who += ", here " + std::to_string(here - world_ranks_.begin());
    }
  }
  if (where.activity && where.process > 0) {
    who += " (process " + std::to_string(where.process) + ")";
  }
  return who + ": " + describe(where, control_.group_id(), now_ns());
}

std::string Watch::everybody(const std::vector<int>& first) const {
  std::vector<int> order;
  for (const int rank : first) {
    order.push_back(world_ranks_[static_cast<std::size_t>(rank)]);
  }
  for (int r = 0; r < journal_.ranks(); ++r) {
    if (std::ranges::find(order, r) == order.end()) {
      order.push_back(r);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string line = "\n  " + line_of(order[i]);
    if (text.size() + line.size() > kMostBytes) {
      return text + "\n  and " + std::to_string(order.size() - i) + " more ranks";
    }
    text += line;
  }
  return text;
}

}  // namespace lockstep::comm
