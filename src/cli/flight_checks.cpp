#include "cli/flight_checks.h"

#include "comm/control.h"
#include "launch/outcome.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

namespace lockstep::cli {
namespace {

using comm::FlightLog;
using comm::FlightRecord;
using comm::Whereabouts;
using Activity = comm::ProcessState::Activity;

constexpr const char* kSameCalls =
    "every rank must make the same calls in the same order: look for a branch that depends on the "
    "rank";

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string date_of(std::int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc) > 0 ? text : "?";
}

// "'bucket 3' (all_reduce f32[1000], #15) of group 'world'".
std::string in_group(const FlightRecord& record) {
  return describe_briefly(record) + " of group '" + record.group_name.data() + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// One rank of the job that is looked at.
struct Rank {
  int rank = 0;
  const FlightLog* log = nullptr;
  Whereabouts where;

  bool closed() const { return where.handle == Whereabouts::Handle::left; }
  bool gone() const { return where.activity == Activity::gone; }
  bool failed() const { return log->header.failure_bytes > 0; }
  bool inside() const { return where.entered.number > 0 && where.entered.left_ns == 0; }
  // Its last operation in a group; null: none that the file still has.
  const FlightRecord* last_in(std::uint64_t group) const {
    const auto& records = log->records;
    const auto found = std::find_if(records.rbegin(), records.rend(),
                                    [&](const FlightRecord& r) { return r.group == group; });
    return found == records.rend() ? nullptr : &*found;
  }
};

struct Job {
  std::uint64_t id = 0;
  int size = 0;
  std::vector<Rank> ranks;  // with a file, ascending
  std::vector<int> missing;
};

class Judge {
 public:
  Judge(const Job& job, std::int64_t now_ns) : job_(job), now_ns_(now_ns) {}

  Finding cause() const {
    using Question = std::optional<Finding> (Judge::*)() const;
    for (const Question question : {&Judge::diverged, &Judge::died, &Judge::left_early,
                                    &Judge::stopped, &Judge::behind, &Judge::failed}) {
      if (auto finding = (this->*question)()) {
        return *finding;
      }
    }
    return healthy();
  }

  std::string line_of(const Rank& rank) const {
    std::string text = describe(rank.where, job_.id, now_ns_);
    if (rank.failed()) {
      text += "; it was told: " + first_line(rank.log->failure());
    }
    return text;
  }

 private:
  std::optional<Finding> diverged() const;
  std::optional<Finding> died() const;
  std::optional<Finding> left_early() const;
  std::optional<Finding> stopped() const;
  std::optional<Finding> behind() const;
  std::optional<Finding> failed() const;
  Finding healthy() const;

  Finding failure(const std::string& found, const std::string& fix) const {
    return {"cause", Verdict::fail, found, fix};
  }
  bool others_went_on(const Rank& rank) const;
  // The operation that some rank is in for the longest time, and which of its group are not.
  const Rank* longest_inside() const;
  std::vector<const Rank*> not_in(const FlightRecord& operation) const;
  std::string who_lacks(const FlightRecord& operation) const;
  std::string advice_for(const Rank& rank) const;

  const Job& job_;
  std::int64_t now_ns_;
};

// Operation (group, sequence) as the ranks recorded it.
using Calls = std::vector<std::pair<int, const FlightRecord*>>;

std::map<std::pair<std::uint64_t, std::uint64_t>, Calls> calls_of(const Job& job) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Calls> calls;
  for (const Rank& rank : job.ranks) {
    for (const FlightRecord& record : rank.log->records) {
      calls[{record.group, record.sequence}].emplace_back(rank.rank, &record);
    }
  }
  return calls;
}

bool all_alike(const Calls& calls) {
  return std::ranges::all_of(
      calls, [&](const auto& call) { return same_call(*call.second, *calls.front().second); });
}

// "rank 0: all_reduce 'a' f32[4] sum; ranks 1 and 2: barrier".
std::string sides_of(Calls calls) {
  std::string text;
  while (!calls.empty()) {
    const FlightRecord& first = *calls.front().second;
    std::vector<int> ranks;
    for (const auto& [rank, record] : calls) {
      if (same_call(*record, first)) {
        ranks.push_back(rank);
      }
    }
    std::erase_if(calls, [&](const auto& call) { return same_call(*call.second, first); });
    text += (text.empty() ? "" : "; ") + launch::name_ranks(ranks) + ": " + describe(first);
  }
  return text;
}

std::optional<Finding> Judge::diverged() const {
  const auto calls = calls_of(job_);
  const Calls* first = nullptr;
  for (const auto& [place, of_ranks] : calls) {
    const bool earlier =
        first == nullptr || of_ranks.front().second->issued_ns < first->front().second->issued_ns;
    if (!all_alike(of_ranks) && earlier) {
      first = &of_ranks;
    }
  }
  if (first == nullptr) {
    return std::nullopt;
  }
  const FlightRecord& one = *first->front().second;
  std::string text = "ranks disagree about operation #" + std::to_string(one.sequence) +
                     " of group '" + one.group_name.data() + "': " + sides_of(*first);
  const auto before = calls.find({one.group, one.sequence - 1});
  std::string where;
  if (before != calls.end()) {
    where = " behind " + describe_briefly(*before->second.front().second);
    text +=
        "; the last that they did alike was " + describe_briefly(*before->second.front().second);
  }
  return failure(text, kSameCalls + where);
}

bool Judge::others_went_on(const Rank& rank) const {
  return std::ranges::any_of(job_.ranks, [&](const Rank& other) {
    if (other.rank == rank.rank || (!other.inside() && !other.failed())) {
      return false;
    }
    const FlightRecord& entered = other.where.entered;
    const FlightRecord* own = rank.last_in(entered.group);
    return own == nullptr || own->sequence < entered.sequence || own->left_ns == 0;
  });
}

std::optional<Finding> Judge::died() const {
  for (const Rank& rank : job_.ranks) {
    if (rank.gone() && !rank.closed() && !rank.failed() &&
        (rank.inside() || others_went_on(rank))) {
      return failure("rank " + std::to_string(rank.rank) + " died: " + line_of(rank),
                     "look at the end of its output; killed by the kernel for memory it says "
                     "nothing, then see dmesg");
    }
  }
  return std::nullopt;
}

std::optional<Finding> Judge::left_early() const {
  for (const Rank& rank : job_.ranks) {
    if (rank.closed() && !rank.failed() && others_went_on(rank)) {
      return failure("rank " + std::to_string(rank.rank) +
                         " destroyed its group while others went on: " + line_of(rank),
                     "an exception or an early return on this rank: look at its output");
    }
  }
  return std::nullopt;
}

std::optional<Finding> Judge::stopped() const {
  for (const Rank& rank : job_.ranks) {
    if (rank.where.activity == Activity::stopped || rank.where.activity == Activity::traced) {
      return failure("rank " + std::to_string(rank.rank) + " is held: " + line_of(rank),
                     advice_for(rank));
    }
  }
  return std::nullopt;
}

const Rank* Judge::longest_inside() const {
  const Rank* longest = nullptr;
  for (const Rank& rank : job_.ranks) {
    if (rank.inside() &&
        (longest == nullptr || rank.where.entered.issued_ns < longest->where.entered.issued_ns)) {
      longest = &rank;
    }
  }
  return longest;
}

std::vector<const Rank*> Judge::not_in(const FlightRecord& operation) const {
  std::vector<const Rank*> late;
  for (const Rank& rank : job_.ranks) {
    const FlightRecord* last = rank.last_in(operation.group);
    // Of groups other than the world, only who was seen in them is known to be a member.
    const bool member = last != nullptr || operation.group == job_.id;
    if (member && (last == nullptr || last->sequence < operation.sequence)) {
      late.push_back(&rank);
    }
  }
  return late;
}

std::string Judge::advice_for(const Rank& rank) const {
  const std::string process = std::to_string(rank.where.process);
  if (!rank.where.activity) {
    return "look at it on the host where it runs: gdb -p " + process + ", then thread apply all bt";
  }
  switch (*rank.where.activity) {
    case Activity::stopped:
      return "continue it: kill -CONT " + process;
    case Activity::traced:
      return "continue it in its debugger, or end that";
    case Activity::running:
      return "if it should not be computing: gdb -p " + process + ", then thread apply all bt";
    default:
      return "see what it waits for: gdb -p " + process + ", then thread apply all bt";
  }
}

std::optional<Finding> Judge::behind() const {
  const Rank* waiting = longest_inside();
  if (waiting == nullptr) {
    return std::nullopt;
  }
  const FlightRecord& operation = waiting->where.entered;
  const auto late = not_in(operation);
  if (late.empty()) {
    return std::nullopt;
  }
  const Rank& first = *late.front();
  std::vector<int> ranks;
  std::ranges::transform(late, std::back_inserter(ranks), &Rank::rank);
  Finding finding =
      failure(launch::name_ranks(ranks) + (ranks.size() == 1 ? " has" : " have") + " not entered " +
                  in_group(operation) + ", in which rank " + std::to_string(waiting->rank) +
                  " has been for " + comm::seconds(now_ns_ - operation.issued_ns) + "; rank " +
                  std::to_string(first.rank) + ": " + line_of(first),
              advice_for(first));
  // It may come yet.
  finding.verdict = first.where.activity == Activity::running ? Verdict::warn : Verdict::fail;
  return finding;
}

std::optional<Finding> Judge::failed() const {
  for (const Rank& rank : job_.ranks) {
    if (rank.failed()) {
      return failure(
          "rank " + std::to_string(rank.rank) + " failed: " + first_line(rank.log->failure()), "");
    }
  }
  return std::nullopt;
}

Finding Judge::healthy() const {
  if (!job_.missing.empty()) {
    return {"cause", Verdict::warn,
            "the ranks that left a file agree; what " + launch::name_ranks(job_.missing) +
                " did is not known",
            "start all ranks with the same LOCKSTEP_FLIGHT, or lockstep launch --flight"};
  }
  std::uint64_t most = 0;
  bool over = true;
  for (const Rank& rank : job_.ranks) {
    most = std::max(most, rank.log->header.last_number);
    over = over && (rank.closed() || rank.gone());
  }
  return {"cause", Verdict::ok,
          "all " + std::to_string(job_.size) + " ranks agree, " +
              (over ? "and ended after " : "so far over ") + std::to_string(most) + " operations",
          ""};
}

// The newest job of the files; the others get their line in `findings`.
Job job_of(const Flights& flights, std::vector<Finding>& findings) {
  const auto leave_out = [&](const comm::FlightFile& file, const std::string& why) {
    findings.push_back({"file", Verdict::warn, file_name(file.path) + " " + why, ""});
  };
  Job job;
  std::int64_t newest = 0;
  for (const comm::FlightFile& file : flights.files) {
    if (file.log && (job.size == 0 || file.log->header.opened_unix_ns > newest)) {
      newest = file.log->header.opened_unix_ns;
      job.id = file.log->header.job;
      job.size = file.log->header.size;
    }
  }
  std::map<int, std::string> taken;
  for (const comm::FlightFile& file : flights.files) {
    if (!file.log) {
      leave_out(file, file.problem);
      continue;
    }
    const comm::FlightHeader& header = file.log->header;
    if (header.job != job.id || header.size != job.size) {
      leave_out(file, "is of another job, begun " + date_of(header.opened_unix_ns) +
                          "; left out, remove it");
    } else if (!taken.emplace(header.rank, file_name(file.path)).second) {
      leave_out(file, "says that it is rank " + std::to_string(header.rank) + ", as " +
                          taken[header.rank] + " does; left out");
    } else {
      if (!file.log->cut.empty()) {
        leave_out(file, "is cut short: " + file.log->cut + "; the rest was read");
      }
      Rank rank{.rank = header.rank, .log = &*file.log, .where = file.log->where()};
      rank.where.activity = flights.activity(header);
      job.ranks.push_back(rank);
    }
  }
  std::ranges::sort(job.ranks, {}, &Rank::rank);
  for (int r = 0; r < job.size; ++r) {
    if (!taken.contains(r)) {
      job.missing.push_back(r);
    }
  }
  return job;
}

}  // namespace

Flights flights_of(const std::string& folder) {
  const std::string boot = comm::boot_id();
  const std::string host = comm::host_name();
  const auto activity = [=](const comm::FlightHeader& header) -> std::optional<Activity> {
    if (header.host.data() != host) {
      return std::nullopt;
    }
    const auto state = comm::state_of(header.process);
    const bool same =
        header.boot.data() == boot && state && state->started_at == header.process_started_at;
    return same ? state->activity : Activity::gone;
  };
  Flights flights{.folder = folder,
                  .files = comm::read_flights(folder),
                  .activity = activity,
                  .now_ns = comm::now_ns()};
  // Another machine's clock, or one of before a restart, says nothing here: the last sign of life
  // is as late as is known.
  std::int64_t last_sign_ns = 0;
  for (const comm::FlightFile& file : flights.files) {
    if (file.log && file.log->header.boot.data() != boot) {
      last_sign_ns = std::max(last_sign_ns, file.log->header.heartbeat_ns);
    }
  }
  flights.now_ns = last_sign_ns > 0 ? last_sign_ns : flights.now_ns;
  return flights;
}

std::vector<Finding> check_flights(const Flights& flights) {
  std::vector<Finding> unused;
  const Job job = job_of(flights, unused);
  std::vector<Finding> findings;
  if (job.ranks.empty()) {
    findings.push_back(
        {"cause", Verdict::fail,
         flights.folder + " holds " + (flights.files.empty() ? "no file" : "no readable file") +
             " rank-*.flight",
         "name the folder that LOCKSTEP_FLIGHT or --flight named, or RUN/flight of a "
         "`lockstep train`"});
  } else {
    const Judge judge(job, flights.now_ns);
    findings.push_back(judge.cause());
    for (const Rank& rank : job.ranks) {
      findings.push_back(
          {"rank " + std::to_string(rank.rank), Verdict::ok, judge.line_of(rank), ""});
    }
    for (const int rank : job.missing) {
      findings.push_back({"rank " + std::to_string(rank), Verdict::warn,
                          "left no file: it never came so far, or recorded elsewhere", ""});
    }
  }
  findings.insert(findings.end(), unused.begin(), unused.end());
  return findings;
}

}  // namespace lockstep::cli
