// The program behind `lockstep plan --web`, apart from `lockstep`, which starts in milliseconds and
// would load an HTTP server each time.
#include "cli/page_server.h"
#include "cli/plan_options.h"
#include "cli/plan_page.h"
#include "lockstep/error.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::cli {
namespace {

// Those that end the program; blocked in all threads, and waited for by one.
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

int serve_page(const std::vector<std::string>& words) {
  const PlanRequest request = parse_plan(words);
  const std::string address = page_address(words);
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  PageServer server(request.port);
  std::thread serving([&server] { server.serve(); });
  std::printf("http://127.0.0.1:%d%s\nCtrl-C ends it.\n", server.port(), address.c_str());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&signals, &signal);
  server.stop();
  serving.join();
  return 0;
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) {
  try {
    return lockstep::cli::serve_page({argv + (argc > 0 ? 1 : 0), argv + argc});
  } catch (const lockstep::UsageError& failure) {
    std::fprintf(stderr, "lockstep plan: %s\n", failure.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "lockstep plan: %s\n", failure.what());
    return 1;
  }
}
