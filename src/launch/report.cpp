#include "launch/report.h"

#include "base/environment.h"
#include "launch/control_socket.h"
#include "lockstep/error.h"

#include <algorithm>

namespace lockstep::launch {

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
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
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
