#include "parallel/write_guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <unistd.h>

namespace lockstep::parallel {
namespace {

// What the handler may read: a guard enters itself, and leaves before its entries die.
std::array<std::atomic<const std::vector<WriteGuard::Entry>*>, 16> g_guarded{};
struct sigaction g_previous {};

void print(const std::string& line) {
  // Nothing is left to do about a failure.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void on_fault(int, siginfo_t* information, void*) {
  const auto* address = static_cast<const std::byte*>(information->si_addr);
  for (const auto& guarded : g_guarded) {
    const std::vector<WriteGuard::Entry>* const entries = guarded.load();
    if (entries == nullptr) {
      continue;
    }
    for (const WriteGuard::Entry& entry : *entries) {
      if (entry.begin <= address && address < entry.end) {
        print(entry.text);
      }
    }
  }
  // The instruction runs again, now for whoever was here before: a debugger, or the default.
  ::sigaction(SIGSEGV, &g_previous, nullptr);
}

void chain_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &g_previous);
  });
}

}  // namespace

WriteGuard::WriteGuard(std::vector<Entry> entries) : entries_(std::move(entries)) {
  chain_handler();
  for (auto& guarded : g_guarded) {
    const std::vector<Entry>* nobody = nullptr;
    if (guarded.compare_exchange_strong(nobody, &entries_)) {
      return;
    }
  }
  // More guards than anybody has models: the fault is then an unexplained one.
}

WriteGuard::~WriteGuard() {
  for (auto& guarded : g_guarded) {
    const std::vector<Entry>* mine = &entries_;
    guarded.compare_exchange_strong(mine, nullptr);
  }
}

}  // namespace lockstep::parallel
