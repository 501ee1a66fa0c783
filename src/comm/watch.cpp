#include "comm/watch.h"

#include <fstream>
#include <iomanip>
#include <sstream>

namespace lockstep::comm {
namespace {

std::string ago(std::int64_t nanoseconds) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(nanoseconds < 10'000'000'000 ? 1 : 0)
      << static_cast<double>(nanoseconds) * 1e-9 << " s ago";
  return out.str();
}

// What the kernel says a process does, from the letter behind its name in /proc/PID/stat.
std::string state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) {
    return "";
  }
  switch (line[name_end + 2]) {
    case 'T':
    case 't':
      return "is stopped";
    case 'R':
      return "is computing";
    case 'D':
      return "waits for a device";
    case 'Z':
      return "is gone";
    default:
      return "sleeps";
  }
}

}  // namespace

bool Watch::behind(int rank, const Needs& needs) const {
  return rank != control_.rank() &&
         (control_.issued(rank) < needs.issued || control_.stepped(rank) < needs.stepped);
}

bool Watch::silent(int rank, const Needs& needs, std::int64_t now) const {
  const std::int64_t sign_ns = std::max(control_.last_seen_ns(rank), needs.since_ns);
  return now - sign_ns > std::chrono::nanoseconds(deadline_).count();
}

std::optional<Failure> Watch::look(const Needs& needs) const {
  const std::int64_t now = now_ns();
  bool late = false;
  for (int r = 0; r < control_.ranks(); ++r) {
    if (!behind(r, needs)) {
      continue;
    }
    if (control_.left(r)) {
      return lost(r, "left (its handle was destroyed; every rank must make the same calls)",
                  describe_briefly(*needs.operation));
    }
    if (dead(r)) {
      return lost(r, "died", describe_briefly(*needs.operation));
    }
    late = late || silent(r, needs, now);
  }
  return late ? std::optional(timed_out(needs, now)) : std::nullopt;
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
              std::to_string(control_.rank()) + " needs it for " + needed_for + "; " +
              last_words(rank, now_ns())};
}

Failure Watch::timed_out(const Needs& needs, std::int64_t now) const {
  std::ostringstream out;
  out << "group '" << group_name_ << "': rank " << control_.rank() << " waits for "
      << describe_briefly(*needs.operation)
      << " and a peer gave no sign of life for the deadline of " << deadline_.count() << " ms";
  for (int r = 0; r < control_.ranks(); ++r) {
    if (behind(r, needs) && silent(r, needs, now)) {  // others wait for the silent ones, too
      out << "; " << last_words(r, now) << process_state(r);
    }
  }
  return {Failure::Kind::timed_out, -1, out.str()};
}

std::string Watch::process_state(int rank) const {
  const pid_t process = presence_ == nullptr ? 0 : presence_->holder(rank).process;
  const std::string state = process == 0 ? "" : state_of(process);
  return state.empty() ? "" : " (its process " + std::to_string(process) + " " + state + ")";
}

std::string Watch::last_words(int rank, std::int64_t now) const {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  const std::uint64_t issued = control_.issued(rank);
  if (issued == 0) {
    return who + "has entered no operation; last seen " + ago(now - control_.last_seen_ns(rank));
  }
  const Fingerprint& entered = control_.posted(rank, issued);
  if (control_.finished(rank) >= issued) {
    return who + "last left " + describe_briefly(entered) + " " +
           ago(now - control_.last_seen_ns(rank));
  }
  return who + "last entered " + describe_briefly(entered) + " " + ago(now - entered.entered_ns);
}

}  // namespace lockstep::comm
