#include "comm/process_state.h"

#include <array>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace lockstep::comm {
namespace {

ProcessState::Activity activity_of(char letter) {
  switch (letter) {
    case 'R':
      return ProcessState::Activity::running;
    case 'D':
      return ProcessState::Activity::on_device;
    case 'T':
      return ProcessState::Activity::stopped;
    case 't':
      return ProcessState::Activity::traced;
    case 'Z':
    case 'X':
    case 'x':
      return ProcessState::Activity::gone;
    default:
      return ProcessState::Activity::asleep;
  }
}

}  // namespace

std::optional<ProcessState> parse_stat(std::string_view text) {
  // The name may hold spaces and brackets; what follows its last one does not.
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos) {
    return std::nullopt;
  }
  // Counted from the state, which proc(5) calls field 3: 14 and 15 are times, 22 is the start.
  std::istringstream fields{std::string(text.substr(name_end + 1))};
  char letter = 0;
  fields >> letter;
  std::string skipped;
  for (int field = 4; field < 14; ++field) {
    fields >> skipped;
  }
  std::int64_t user = 0;
  std::int64_t system = 0;
  fields >> user >> system;
  for (int field = 16; field < 22; ++field) {
    fields >> skipped;
  }
  ProcessState state;
  if (!(fields >> state.started_at)) {
    return std::nullopt;
  }
  state.activity = activity_of(letter);
  state.cpu_ms = (user + system) * 1000 / ::sysconf(_SC_CLK_TCK);
  return state;
}

std::optional<ProcessState> state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::ostringstream text;
  text << file.rdbuf();
  return parse_stat(text.str());
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace lockstep::comm
