#include "support/ranks.h"

#include "support/leaks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <thread>
#include <unistd.h>

namespace lockstep::test {
namespace {

struct Child {
  pid_t pid = -1;
  int pipe = -1;
};

void set_environment(int rank, int ranks, const std::string& job) {
  const std::string world = std::to_string(ranks);
  const std::string own = std::to_string(rank);
  ::setenv("RANK", own.c_str(), 1);
  ::setenv("LOCAL_RANK", own.c_str(), 1);
  ::setenv("WORLD_SIZE", world.c_str(), 1);
  ::setenv("LOCAL_WORLD_SIZE", world.c_str(), 1);
  ::setenv("LOCKSTEP_JOB", job.c_str(), 1);
}

void write_all(int fd, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, next, bytes);
    if (written <= 0) {
      ::_exit(99);
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

// What this process's expectations have said so far: the parent's, until the body runs.
std::vector<std::string> failed_expectations() {
  std::vector<std::string> texts;
  if (const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info()) {
    for (int i = 0; i < test->result()->total_part_count(); ++i) {
      const ::testing::TestPartResult& part = test->result()->GetTestPartResult(i);
      if (part.failed()) {
        texts.emplace_back(part.message());
      }
    }
  }
  return texts;
}

[[noreturn]] void run_child(int fd, const std::function<std::vector<double>(Group&)>& body,
                            const RanksOptions& options) {
  std::vector<double> values;
  std::string error;
  const std::size_t failed_before = failed_expectations().size();
  try {
    Group group = Group::from_environment({.deadline = options.deadline});
    values = body(group);
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  const std::vector<std::string> failed = failed_expectations();
  if (error.empty() && failed.size() > failed_before) {
    error = "an expectation failed: " + failed[failed_before];
  }
  const std::size_t sizes[2] = {values.size(), error.size()};
  write_all(fd, sizes, sizeof(sizes));
  write_all(fd, values.data(), values.size() * sizeof(double));
  write_all(fd, error.data(), error.size());
  // Neither gtest's nor the parent's exit handlers are this process's business.
  std::fflush(nullptr);
  end_process(error.empty() ? 0 : 1);
}

std::string read_all(int fd) {
  std::string bytes;
  char buffer[65536];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof(buffer))) > 0;) {
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return bytes;
}

RankResult parse(const std::string& text) {
  RankResult result;
  std::array<std::size_t, 2> sizes{};
  if (text.size() < sizeof(sizes)) {
    result.error = "the rank ended without a result";
    return result;
  }
  const auto copy = [](std::span<const std::byte> from, std::span<std::byte> to) {
    std::ranges::copy(from, to.begin());
  };
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  copy(bytes.first(sizeof(sizes)), std::as_writable_bytes(std::span(sizes)));
  result.values.resize(sizes[0]);
  const std::size_t value_bytes = sizes[0] * sizeof(double);
  copy(bytes.subspan(sizeof(sizes), value_bytes), std::as_writable_bytes(std::span(result.values)));
  result.error = text.substr(sizeof(sizes) + value_bytes, sizes[1]);
  return result;
}

}  // namespace

std::vector<RankResult> run_ranks(int ranks, const std::function<std::vector<double>(Group&)>& body,
                                  const RanksOptions& options) {
  const std::string job =
      "test-" + std::to_string(::getpid()) + "-" + std::to_string(std::random_device{}());
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(ends[0]);
      ::alarm(static_cast<unsigned>(options.test_limit.count()));
      set_environment(rank, ranks, job);
      run_child(ends[1], body, options);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<RankResult> results;
  for (const Child& child : children) {
    results.push_back(parse(read_all(child.pipe)));
    EXPECT_EQ(::waitpid(child.pid, &results.back().status, 0), child.pid);
    EXPECT_FALSE(WIFSIGNALED(results.back().status) && WTERMSIG(results.back().status) == SIGALRM)
        << "rank " << results.size() - 1 << " did not end within the test's limit";
    EXPECT_FALSE(leaked(results.back().status))
        << "rank " << results.size() - 1 << " lost memory: LeakSanitizer's list is above";
  }
  return results;
}

}  // namespace lockstep::test
