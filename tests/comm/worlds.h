// Ranks as threads of the test: runs a body on every handle of a group, and keeps what each threw.
#pragma once

#include "lockstep/group.h"

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::test {

// What each rank threw; null where it returned.
using Outcomes = std::vector<std::exception_ptr>;

// Runs body(group) on one thread per handle. Handles live until all threads are back, unless a body
// takes its own away.
inline Outcomes run_ranks(std::vector<Group>& groups, const std::function<void(Group&)>& body) {
  Outcomes outcomes(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        body(groups[r]);
      } catch (...) {
        outcomes[r] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return outcomes;
}

inline std::string text_of(const std::exception_ptr& outcome) {
  if (outcome == nullptr) {
    return "";
  }
  try {
    std::rethrow_exception(outcome);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// The same for bodies that must not throw. One that does, or fails an assertion, gives up its
// handle, so that the others learn it at once.
inline void on_ranks(std::vector<Group>& groups, const std::function<void(Group&)>& body) {
  const auto outcomes = run_ranks(groups, [&](Group& group) {
    try {
      body(group);
    } catch (...) {
      { const Group gone = std::move(group); }
      throw;
    }
    if (::testing::Test::HasFatalFailure()) {
      const Group gone = std::move(group);
    }
  });
  std::string failed;
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    if (outcomes[r] != nullptr) {
      failed += "rank " + std::to_string(r) + ": " + text_of(outcomes[r]) + "\n";
    }
  }
  if (!failed.empty()) {
    throw std::runtime_error(failed);
  }
}

inline void on_ranks(int ranks, const std::function<void(Group&)>& body) {
  auto groups = Group::of_threads(ranks, {.deadline = std::chrono::seconds(60)});
  on_ranks(groups, body);
}

template <class Error>
bool threw(const std::exception_ptr& outcome) {
  if (outcome == nullptr) {
    return false;
  }
  try {
    std::rethrow_exception(outcome);
  } catch (const Error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace lockstep::test
