#include "launch/report.h"

#include "base/environment.h"
#include "launch/control_socket.h"
#include "lockstep/error.h"

namespace lockstep::launch {

FailureKind kind_of(const std::exception& failure) {
  return dynamic_cast<const GroupError*>(&failure) != nullptr ? FailureKind::consequence
                                                              : FailureKind::cause;
}

bool report_failure(FailureKind kind, std::string_view text) noexcept try {
  const auto control = environment::text("LOCKSTEP_CONTROL");
  const auto rank = environment::integer("RANK");
  return control && rank && send_report(*control, static_cast<int>(*rank), kind, text);
} catch (const std::exception&) {  // a RANK that is no number, or no memory left
  return false;
}

}  // namespace lockstep::launch
