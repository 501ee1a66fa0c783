// Sleeping on a 32-bit word that other processes may map too.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <unistd.h>

namespace lockstep::comm {

// Returns when woken, when the word is not `expected`, when `timeout` passed, or for no reason.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::chrono::milliseconds timeout) {
  std::timespec wait{};
  wait.tv_sec = timeout.count() / 1000;
  wait.tv_nsec = timeout.count() % 1000 * 1'000'000;
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &wait, nullptr, 0);
}

inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 &&
              std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace lockstep::comm
