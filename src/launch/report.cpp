#include "launch/report.h"

#include "base/environment.h"
#include "launch/control_socket.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>

namespace lockstep::launch {
namespace {

// Whether a line is one of those with which PeerLost and TimedOut end.
bool tells_of_ranks(std::string_view line) {
  constexpr std::array<std::string_view, 3> kBegins{"  rank ", "  the world's rank ", "  and "};
  return std::ranges::any_of(kBegins, [&](auto begin) { return line.starts_with(begin); });
}

}  // namespace

FailureKind kind_of(const std::exception& failure) {
  return dynamic_cast<const GroupError*>(&failure) != nullptr ? FailureKind::consequence
                                                              : FailureKind::cause;
}

std::string one_line(std::string_view text) {
  // LibTorch appends the frames of its own stack.
  for (const std::string_view frames : {"\nException raised from ", "\nframe #"}) {
    text = text.substr(0, text.find(frames));
  }
  std::string line(text);
  std::ranges::replace(line, '\r', ' ');
  for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos; ++at) {
    if (!tells_of_ranks(std::string_view(line).substr(at + 1))) {
      line[at] = ' ';
    }
  }
  return line;
}

bool report_failure(FailureKind kind, std::string_view text) noexcept try {
  const auto control = environment::text("LOCKSTEP_CONTROL");
  const auto rank = environment::integer("RANK");
  return control && rank && send_report(*control, static_cast<int>(*rank), kind, text);
} catch (const std::exception&) {  // a RANK that is no number, or no memory left
  return false;
}

}  // namespace lockstep::launch
