#include "comm/whereabouts.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace lockstep::comm {
namespace {

using Activity = ProcessState::Activity;

// Below it a heartbeat is no news: ranks that wait give one every 50 ms.
constexpr std::int64_t kFresh_ns = 1'000'000'000;

std::string operation(const FlightRecord& record, std::uint64_t group) {
  const bool elsewhere = record.group != group;
  return describe_briefly(record) +
         (elsewhere ? " of group '" + std::string(record.group_name.data()) + "'" : "");
}

enum class Manner : std::uint8_t { waits, goes_on, has_ended };

struct Doing {
  std::string verb;
  Manner manner;
};

Doing doing(const Whereabouts& where) {
  if (where.activity == Activity::stopped) {
    return {"stopped (SIGSTOP)", Manner::has_ended};
  }
  if (where.activity == Activity::traced) {
    return {"held by a debugger", Manner::has_ended};
  }
  if (where.activity == Activity::gone) {
    return {"gone", Manner::has_ended};
  }
  if (where.handle == Whereabouts::Handle::left) {
    return {"through (its handle was destroyed)", Manner::has_ended};
  }
  if (where.waiting_since_ns != 0) {
    return {"waiting", Manner::waits};
  }
  if (!where.activity) {
    return {"elsewhere", Manner::goes_on};  // nobody can see what it does
  }
  if (where.activity == Activity::on_device) {
    return {"blocked on a disk or device", Manner::goes_on};
  }
  return {where.activity == Activity::running ? "computing" : "asleep", Manner::goes_on};
}

std::string ago(std::int64_t then_ns, std::int64_t now_ns) {
  return seconds(now_ns - then_ns) + " ago";
}

std::string last_left(const Whereabouts& where, std::uint64_t group, std::int64_t now_ns) {
  return where.left.number == 0 ? ""
                                : ", last left " + operation(where.left, group) + " " +
                                      ago(where.left.left_ns, now_ns);
}

std::string waits(const Whereabouts& where, std::uint64_t group, std::int64_t now_ns) {
  std::string text = " for " + operation(where.awaited, group) + " for " +
                     seconds(now_ns - where.waiting_since_ns);
  if (where.entered.number != where.awaited.number) {
    text += ", last entered " + operation(where.entered, group) + " " +
            ago(where.entered.issued_ns, now_ns);
  }
  return text + last_left(where, group, now_ns);
}

// "for 41 s since leaving 'bucket 3'": the later of entering and leaving. After the end of a rank
// it is told as an event: how long it has been gone is not known.
std::string since(const Whereabouts& where, Manner manner, std::uint64_t group,
                  std::int64_t now_ns) {
  const FlightRecord& entered = where.entered;
  if (entered.number == 0) {
    return manner == Manner::has_ended ? "; it entered no operation"
                                       : " before its first operation";
  }
  const bool inside = where.left.left_ns < entered.issued_ns;
  const FlightRecord& last = inside ? entered : where.left;
  const std::int64_t then = inside ? entered.issued_ns : last.left_ns;
  std::string text = manner == Manner::has_ended
                         ? std::string("; it ") + (inside ? "entered " : "left ") +
                               operation(last, group) + " " + ago(then, now_ns) +
                               (inside ? " and has not left it" : "")
                         : " for " + seconds(now_ns - then) + " since " +
                               (inside ? "entering " : "leaving ") + operation(last, group);
  if (inside) {
    return text + last_left(where, group, now_ns);
  }
  return last.number == entered.number ? text
                                       : text + ", with " + operation(entered, group) + " begun";
}

std::string heartbeat(const Whereabouts& where, std::int64_t now_ns) {
  const std::int64_t event = std::max(where.entered.issued_ns, where.left.left_ns);
  if (where.heartbeat_ns <= event + kFresh_ns || now_ns - where.heartbeat_ns < kFresh_ns) {
    return "";
  }
  return ", last sign of life " + seconds(now_ns - where.heartbeat_ns) + " ago";
}

std::string step_of(const Whereabouts& where) {
  return where.entered.step < 0 ? "" : " (step " + std::to_string(where.entered.step) + ")";
}

}  // namespace

std::string seconds(std::int64_t nanoseconds) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(nanoseconds < 10'000'000'000 ? 1 : 0)
      << static_cast<double>(std::max<std::int64_t>(nanoseconds, 0)) * 1e-9 << " s";
  return out.str();
}

std::string describe(const Whereabouts& where, std::uint64_t group, std::int64_t now_ns) {
  const auto [verb, manner] = doing(where);
  return verb +
         (manner == Manner::waits ? waits(where, group, now_ns)
                                  : since(where, manner, group, now_ns)) +
         heartbeat(where, now_ns) + step_of(where);
}

}  // namespace lockstep::comm
