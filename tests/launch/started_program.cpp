#include "launch/started_program.h"

#include "launch/pointers.h"

#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <signal.h>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace lockstep::test {
namespace {

using launch::pointers_to;

namespace fs = std::filesystem;

// Empty where there is none: processes end while they are looked at.
std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool is_zombie(const std::string& process_folder) {
  const std::string stat = text_of(process_folder + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.compare(name_end, 3, ") Z") == 0;
}

[[noreturn]] void become(std::vector<char*> words, std::vector<char*> environment,
                         const std::string& folder) {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGINT, SIG_DFL);
  ::dup2(::open((folder + "/output").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
  ::dup2(::open((folder + "/error").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
  ::closefrom(3);
  ::execve(words.front(), words.data(), environment.data());
  ::_exit(126);
}

}  // namespace

StartedProgram::StartedProgram(std::vector<std::string> command,
                               const std::vector<std::string>& environment) {
  static std::atomic<int> count{0};
  mark_ = "LOCKSTEP_TEST_MARK=" + std::to_string(::getpid()) + "." + std::to_string(++count);
  std::vector<std::string> variables = environment;
  variables.push_back(mark_);
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  const std::vector<char*> words = pointers_to(command);
  const std::vector<char*> pointers = pointers_to(variables);
  pid_ = ::fork();
  if (pid_ == 0) {
    become(words, pointers, folder_.path());
  }
}

StartedProgram::~StartedProgram() {
  for (const pid_t pid : marked_processes()) {
    ::kill(pid, SIGKILL);
  }
  if (!reaped_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

int StartedProgram::wait(std::chrono::milliseconds patience) {
  int status = 0;
  if (!reaped_) {
    reaped_ = wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, patience);
    if (reaped_) {
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }
  return exit_code_;
}

std::string StartedProgram::output() const { return text_of(folder_.file("output")); }

std::string StartedProgram::error() const { return text_of(folder_.file("error")); }

bool StartedProgram::wait_for_text(const std::string& text,
                                   std::chrono::milliseconds patience) const {
  return wait_until([&] { return (output() + "\n" + error()).find(text) != std::string::npos; },
                    patience);
}

std::vector<pid_t> StartedProgram::marked_processes() const {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (pid <= 0 || is_zombie(entry.path())) {
      continue;
    }
    const std::string variables = std::string(1, '\0') + text_of(entry.path() / "environ");
    if (variables.find(std::string(1, '\0') + mark_ + std::string(1, '\0')) != std::string::npos) {
      found.push_back(pid);
    }
  }
  return found;
}

bool StartedProgram::nothing_left(std::chrono::milliseconds patience) const {
  return wait_until([&] { return marked_processes().empty(); }, patience);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace lockstep::test
