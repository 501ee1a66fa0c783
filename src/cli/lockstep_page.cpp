// The program behind `lockstep plan --web` and `lockstep dash`, apart from `lockstep`, which starts
// in milliseconds and would load an HTTP server each time. Its first word is plan or dash.
#include "cli/dash_options.h"
#include "cli/dash_page.h"
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

struct Page {
  int port = 0;
  std::string address;  // on the server: "/?params=8e9"
  PageAnswers answers;
};

Page page_of(const std::string& command, const std::vector<std::string>& words) {
  if (command == "plan") {
    return {parse_plan(words).port, page_address(words), plan_page};
  }
  if (command == "dash") {
    const DashRequest request = parse_dash(words);
    return {request.port, "/",
            [folders = request.folders](const std::string& path, const PageParameters& parameters) {
              return dash_page(folders, path, parameters);
            }};
  }
  throw UsageError("is started by lockstep plan --web and lockstep dash; use those");
}

int serve_page(const Page& page) {
  const sigset_t signals = ending_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  PageServer server(page.port, page.answers);
  std::thread serving([&server] { server.serve(); });
  std::printf("http://127.0.0.1:%d%s\nCtrl-C ends it.\n", server.port(), page.address.c_str());
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
  const std::vector<std::string> words(argv + (argc > 1 ? 2 : argc), argv + argc);
  const std::string command = argc > 1 ? argv[1] : "page";
  try {
    return lockstep::cli::serve_page(lockstep::cli::page_of(command, words));
  } catch (const lockstep::UsageError& failure) {
    std::fprintf(stderr, "lockstep %s: %s\n", command.c_str(), failure.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "lockstep %s: %s\n", command.c_str(), failure.what());
    return 1;
  }
}
