#include "cli/standard_output.h"

#include "lockstep/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace lockstep::cli {

bool print_if_asked(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return !text.empty();
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return;
  }
  const int reason = errno;
  if (reason != EBADF) {
    throw SystemError(std::string("standard output can't be written") +
                      (reason == 0 ? "" : std::string(" (") + std::strerror(reason) + ")") +
                      "; what was printed is incomplete");
  }
}

}  // namespace lockstep::cli
