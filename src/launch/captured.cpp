#include "launch/captured.h"

#include "base/environment.h"
#include "launch/file_descriptor.h"
#include "launch/pointers.h"
#include "lockstep/error.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <thread>
#include <unistd.h>

namespace lockstep::launch {
namespace {

using Clock = std::chrono::steady_clock;

FileDescriptor make_buffer() {
  FileDescriptor buffer(::memfd_create("lockstep-output", MFD_CLOEXEC));
  if (!buffer) {
    throw SystemError(std::string("memfd_create: ") + std::strerror(errno));
  }
  return buffer;
}

std::string contents_of(const FileDescriptor& buffer) {
  std::string text;
  std::array<char, 65536> piece{};
  ssize_t got = 0;
  while ((got = ::pread(buffer.get(), piece.data(), piece.size(),
                        static_cast<off_t>(text.size()))) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

pid_t spawn(const CapturedOptions& options, int output, int error) {
  std::vector<std::string> words = options.command;
  std::vector<std::string> variables = environment::inherited_with(options.environment);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own, to end it
  pid_t child = -1;
  const int failure = ::posix_spawnp(&child, words.at(0).c_str(), &actions, &attributes,
                                     pointers_to(words).data(), pointers_to(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw SystemError(words[0] + " can't be started: " + std::strerror(failure));
  }
  return child;
}

// Whether it ended in time; its status then.
bool wait_until(pid_t child, Clock::time_point end, int& status) {
  constexpr std::chrono::milliseconds kBetweenLooks{2};
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

}  // namespace

Captured run_captured(const CapturedOptions& options) {
  constexpr std::chrono::seconds kGrace{3};
  const FileDescriptor output = make_buffer();
  const FileDescriptor error = make_buffer();
  const auto begin = Clock::now();
  const pid_t child = spawn(options, output.get(), error.get());
  int status = 0;
  Captured result;
  if (!wait_until(child, begin + options.patience, status)) {
    result.timed_out = true;
    ::kill(-child, SIGTERM);
    if (!wait_until(child, Clock::now() + kGrace, status)) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
  }
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.output = contents_of(output);
  result.error = contents_of(error);
  return result;
}

}  // namespace lockstep::launch
