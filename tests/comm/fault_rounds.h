// What befalls processes inside each collective: one round of it, with moments drawn by its number.
// Every rank ends with the right error, nothing is left of the job.
#pragma once

#include "comm/every_collective.h"
#include "comm/from_environment.h"
#include "comm/issue_scheduled.h"
#include "comm/processes.h"
#include "comm/random_collectives.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <thread>

namespace lockstep::test {

inline constexpr int kFaultRanks = 3;

// What ranks and the test tell each other, in memory that fork shares.
class Signs {
 public:
  struct Shared {
    std::array<std::atomic<int>, kFaultRanks> rounds;
    std::atomic<bool> over;
  };
  Signs() {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("mmap");
    }
    shared_ = new (memory) Shared{};
  }
  ~Signs() { ::munmap(shared_, sizeof(Shared)); }
  Signs(const Signs&) = delete;
  Signs& operator=(const Signs&) = delete;
  Shared* operator->() const { return shared_; }

  // Whether all ranks have been through the collective twice.
  bool all_run() const {
    for (int wait_ms = 0; wait_ms < 20'000; ++wait_ms) {
      if (std::ranges::all_of(shared_->rounds, [](const auto& rounds) { return rounds >= 2; })) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

 private:
  Shared* shared_;
};

// A job whose ranks run one collective over and over.
struct FaultJob {
  static constexpr std::int64_t kCount = 300'000;  // several chunks of staging memory and of lines

  Call call;
  Processes ranks;
  Signs signs;

  void start(std::chrono::milliseconds deadline, const std::function<void(Group, Room&)>& body) {
    for (int r = 0; r < kFaultRanks; ++r) {
      ranks.start([this, r, deadline, body] {
        Room room(r, kFaultRanks, kCount);
        body(Group(comm::form_world({r, kFaultRanks, ranks.job(), {.deadline = deadline}})), room);
      });
    }
  }
  void run(Group& group, Room& room, int round) {
    room.run(group, call, round);
    ++signs->rounds[static_cast<std::size_t>(group.rank())];
  }
  void run_until_it_fails(Group group, Room& room) {
    for (int round = 0;; round = (round + 1) % 1000) {
      run(group, room, round);
    }
  }
};

// Neither a name in a folder that programs leave things in, nor a socket, nor a process.
inline void expect_nothing_left(const std::string& job) {
  for (const char* folder : {"/dev/shm", "/tmp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EXPECT_EQ(entry.path().string().find(job), std::string::npos) << entry.path();
    }
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    EXPECT_EQ(line.find(job), std::string::npos) << line;
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

// Inside the collective, at a moment that `draw` gives; then all others get `text`.
inline void end_inside(const Call& call, int victim, int signal, std::mt19937& draw) {
  SCOPED_TRACE(call.text() + ", rank " + std::to_string(victim));
  FaultJob job{.call = call, .ranks = {}, .signs = {}};
  job.start(std::chrono::seconds(60), [&job](Group group, Room& room) {
    ::signal(SIGUSR1, [](int) { ::_exit(0); });  // ends without a word, and not as if it failed
    job.run_until_it_fails(std::move(group), room);
  });
  ASSERT_TRUE(job.signs.all_run());
  std::this_thread::sleep_for(std::chrono::microseconds(draw() % 4000));
  ::kill(job.ranks.process(victim), signal);
  const std::string died = "rank " + std::to_string(victim) + " died while rank ";
  for (int r = 0; r < kFaultRanks; ++r) {
    const Ended ended = job.ranks.end(r);
    if (r != victim) {
      EXPECT_EQ(ended.text.rfind("PeerLost", 0), 0u) << ended.text;
      EXPECT_NE(ended.text.find(died), std::string::npos) << ended.text;
    }
  }
  expect_nothing_left(job.ranks.job());
}

// Every kind as the library chooses, and by each algorithm that three ranks can run.
inline std::vector<Call> calls_with_algorithms() {
  std::vector<Call> calls;
  for (const comm::Kind kind : kCollectives) {
    for (const Algorithm algorithm : kAlgorithms) {
      if (algorithm != Algorithm::automatic && can(kind, algorithm, kFaultRanks, kFaultRanks)) {
        calls.push_back({kind, algorithm});
      }
    }
  }
  return calls;
}

inline void kill_each_rank_inside_each_collective(unsigned round) {
  std::mt19937 draw(round);
  for (const comm::Kind kind : kEveryKind) {
    for (int victim = 0; victim < kFaultRanks; ++victim) {
      end_inside({.kind = kind}, victim, SIGKILL, draw);
    }
  }
}

inline void kill_a_rank_inside_each_algorithm(unsigned round) {
  std::mt19937 draw(round);
  for (const Call& call : calls_with_algorithms()) {
    end_inside(call, static_cast<int>(draw() % kFaultRanks), SIGKILL, draw);
  }
}

inline void exit_inside_each_collective(unsigned round) {
  std::mt19937 draw(round);
  for (const comm::Kind kind : kEveryKind) {
    end_inside({.kind = kind}, static_cast<int>(draw() % kFaultRanks), SIGUSR1, draw);
  }
}

// Stopped for less than the deadline, a rank is waited for, and all values are right.
inline void stop_within_the_deadline(const Call& call, int victim) {
  SCOPED_TRACE(call.text() + ", rank " + std::to_string(victim));
  FaultJob job{.call = call, .ranks = {}, .signs = {}};
  job.start(std::chrono::seconds(60), [&job](Group group, Room& room) {
    std::uint8_t over = 0;
    for (int round = 0; over == 0; round = (round + 1) % 1000) {
      job.run(group, room, round);
      over = job.signs->over ? 1 : 0;
      group.broadcast(std::span(&over, 1), 0).wait();
    }
  });
  ASSERT_TRUE(job.signs.all_run());
  ::kill(job.ranks.process(victim), SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  ::kill(job.ranks.process(victim), SIGCONT);
  job.signs->over = true;
  for (int r = 0; r < kFaultRanks; ++r) {
    const Ended ended = job.ranks.end(r);
    EXPECT_TRUE(ended.clean()) << ended.text;
  }
  expect_nothing_left(job.ranks.job());
}

// The body of a rank in a job of which `victim` is stopped for longer than the deadline. Whoever is
// not stopped uses the memory of the collective again, into which nothing may be written.
inline void outlast(FaultJob& job, Group group, Room& room, int victim) {
  const int rank = group.rank();
  try {
    job.run_until_it_fails(std::move(group), room);
  } catch (const TimedOut& error) {
    const std::string text = error.what();
    const std::string silent = "rank " + std::to_string(victim) + " gave no sign of life";
    // With messages a rank may first miss what its neighbour, itself waiting, did not send.
    const bool named = job.call.kind == comm::Kind::send || text.find(silent) != std::string::npos;
    if (!named || text.find("): stopped (SIGSTOP)") == std::string::npos) {
      throw std::runtime_error(text);
    }
  }
  room.fill(42.0f);
  for (int wait_ms = 0; rank != victim && !job.signs->over && wait_ms < 20'000; ++wait_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!room.holds_only(42.0f)) {
    throw std::runtime_error("memory changed after the failure");
  }
}

inline void stop_past_the_deadline(const std::vector<comm::Kind>& kinds, unsigned round) {
  constexpr std::chrono::milliseconds kDeadline{1500};
  const auto victim_of = [round](std::size_t i) {
    return static_cast<int>((round + i) % kFaultRanks);
  };
  std::vector<std::unique_ptr<FaultJob>> jobs;
  for (const comm::Kind kind : kinds) {
    jobs.emplace_back(new FaultJob{.call = {.kind = kind}, .ranks = {}, .signs = {}});
    FaultJob& job = *jobs.back();
    const int victim = victim_of(jobs.size() - 1);
    job.start(kDeadline, [&job, victim](Group group, Room& room) {
      outlast(job, std::move(group), room, victim);
    });
    ASSERT_TRUE(job.signs.all_run());
    ::kill(job.ranks.process(victim), SIGSTOP);
  }
  std::this_thread::sleep_for(2 * kDeadline);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(jobs[i]->call.text());
    const int victim = victim_of(i);
    ::kill(jobs[i]->ranks.process(victim), SIGCONT);
    const Ended continued = jobs[i]->ranks.end(victim);
    EXPECT_TRUE(continued.clean()) << continued.text;
    jobs[i]->signs->over = true;
    for (int r = 0; r < kFaultRanks; ++r) {
      if (r != victim) {
        const Ended ended = jobs[i]->ranks.end(r);
        EXPECT_TRUE(ended.clean()) << ended.text;
      }
    }
  }
  for (const auto& job : jobs) {
    expect_nothing_left(job->ranks.job());
  }
}

}  // namespace lockstep::test
