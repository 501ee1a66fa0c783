#include "support/leaks.h"

#include <sys/wait.h>

#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace lockstep::test {
namespace {

constexpr int kLeaked = 23;  // as LeakSanitizer itself ends a process

bool loses_memory() {
#ifdef __SANITIZE_ADDRESS__
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

}  // namespace

void end_process(int status) { ::_exit(loses_memory() ? kLeaked : status); }

bool leaked(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kLeaked; }

}  // namespace lockstep::test
