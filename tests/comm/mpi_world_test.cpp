// The world as mpirun starts it, under a real Open MPI and a real MPICH.
#include "comm/plain_checks.h"
#include "support/mpi_job.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using test::MpiJob;

// The MPI library, and what LOCKSTEP_TRANSPORT says.
class MpiWorld : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  MpiJob job(int ranks, std::vector<std::string> environment = {}) const {
    const auto& [library, transport] = GetParam();
    environment.push_back(std::string("LOCKSTEP_TRANSPORT=") + transport);
    return {library, ranks, std::move(environment)};
  }
  bool over_network() const { return std::string(std::get<1>(GetParam())) == "mpi"; }
};
INSTANTIATE_TEST_SUITE_P(Libraries, MpiWorld,
                         ::testing::Combine(::testing::Values("openmpi", "mpich"),
                                            ::testing::Values("auto", "mpi")));

TEST_P(MpiWorld, collectives_and_parts_of_the_world_give_the_trees_bits) {
  const MpiJob mpi = job(3);
  if (!mpi.is_rank()) {
    const auto ended = mpi.run();
    EXPECT_EQ(ended.status, 0) << ended.output;
    for (const char* line : {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3"}) {
      EXPECT_NE(ended.output.find(line), std::string::npos) << ended.output;
    }
    return;
  }
  Group world = Group::from_environment();
  test::check_all<float>(world, 1001);
  test::check_all<Bfloat16>(world, 300'000);
  const std::int64_t before = world.traffic().sent;
  test::check_all_reduce<float>(world, 3 * 64 * 100, {.op = ReduceOp::mean});
  // Through staging memory a rank only writes what it has reduced; over the network both halves.
  EXPECT_EQ(world.traffic().sent - before, (over_network() ? 4 : 2) * 64 * 100 * 4);
  auto part = world.split(world.rank() % 2, 0);
  test::check_all_reduce<double>(*part, 5000, {});
  const bool has_host_memory = [&] {
    try {
      return world.allocate_host(100, "shared").bytes() == 100;
    } catch (const UsageError&) {
      return false;
    }
  }();
  EXPECT_EQ(has_host_memory, !over_network());
  world.barrier();
  test::say("rank " + std::to_string(world.rank()) + " of " + std::to_string(world.size()));
}

// One that a library keeps a copy of, one that waits for its receiver, and nothing at all.
TEST_P(MpiWorld, messages_between_two_ranks_arrive_in_order) {
  const MpiJob mpi = job(3);
  if (!mpi.is_rank()) {
    const auto ended = mpi.run();
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_NE(ended.output.find("all came"), std::string::npos) << ended.output;
    return;
  }
  Group world = Group::from_environment();
  for (const std::int64_t count : {1000, 3'000'000, 0, 1}) {
    auto values = test::filled<float>(count, world.rank(), 1);
    if (world.rank() == 2) {
      world.send(test::span_of(values), 0, "values").wait();
    } else if (world.rank() == 0) {
      world.recv(test::span_of(values), 2, "values").wait();
      test::require_values("recv", values, 0,
                           [](std::int64_t i) { return test::value_of<float>(2, i, 1); });
    }
  }
  world.barrier();
  if (world.rank() == 0) {
    test::say("all came");
  }
}

// hydra ends a job with its first rank that ends without MPI_Finalize: what ranks say in files
// stays, and each waits until all have spoken.
constexpr const char* kWords = "LOCKSTEP_TEST_WORDS";

void say_when_all_do(int rank, int ranks, const std::string& word) {
  const std::string folder = std::string(std::getenv(kWords)) + "/";
  const std::string unfinished = folder + "unfinished-" + std::to_string(rank);
  std::ofstream(unfinished) << word;
  std::filesystem::rename(unfinished, folder + std::to_string(rank));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  for (int other = 0; other < ranks && std::chrono::steady_clock::now() < end;) {
    if (std::filesystem::exists(folder + std::to_string(other))) {
      ++other;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST_P(MpiWorld, messages_that_differ_are_a_mismatch_on_all_ranks) {
  if (job(3).is_rank()) {
    Group world = Group::from_environment({.deadline = std::chrono::seconds(60)});
    std::vector<float> values(1000);
    try {
      if (world.rank() == 0) {
        world.send(std::span(values), 1, "values").wait();
      } else if (world.rank() == 1) {
        world.recv(std::span(values).first(7), 0, "values").wait();
      }
      world.barrier();
    } catch (const Mismatch&) {
      say_when_all_do(world.rank(), world.size(), "Mismatch");
    }
    return;
  }
  const test::TemporaryFolder words;
  const auto ended = job(3, {kWords + ("=" + words.path())}).run();
  for (const char* rank : {"0", "1", "2"}) {
    ASSERT_TRUE(std::filesystem::exists(words.file(rank))) << rank << ": " << ended.output;
    EXPECT_EQ(test::contents_of(words.file(rank)), "Mismatch") << rank;
  }
}

TEST_P(MpiWorld, C35_when_the_sender_is_killed_the_job_ends) {
  const MpiJob mpi = job(2);
  if (mpi.is_rank()) {
    Group world = Group::from_environment({.deadline = std::chrono::seconds(60)});
    world.barrier();
    float value = 0;
    if (world.rank() == 1) {
      ::kill(::getpid(), SIGKILL);
    }
    world.recv(std::span(&value, 1), 1).wait();
    FAIL() << "a message of rank 1";
  }
  const auto ended = mpi.run();
  EXPECT_NE(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output.find("a message of rank 1"), std::string::npos) << ended.output;
}

TEST_P(MpiWorld, C35_when_a_rank_is_killed_the_job_ends_and_says_so) {
  const MpiJob mpi = job(3);
  if (mpi.is_rank()) {
    Group world = Group::from_environment({.deadline = std::chrono::seconds(60)});
    world.barrier();
    if (world.rank() == 1) {
      ::kill(::getpid(), SIGKILL);
    }
    world.barrier();
    world.barrier();
    FAIL() << "a barrier without rank 1";
  }
  const auto ended = mpi.run();
  EXPECT_NE(ended.status, 0) << ended.output;
  EXPECT_EQ(ended.output.find("a barrier without rank 1"), std::string::npos) << ended.output;
}

// The rank that throws takes its leave while the others wait for it.
TEST_P(MpiWorld, a_rank_that_throws_ends_the_job) {
  const MpiJob mpi = job(3);
  if (mpi.is_rank()) {
    Group world = Group::from_environment({.deadline = std::chrono::seconds(60)});
    world.barrier();
    if (world.rank() == 1) {
      throw std::runtime_error("rank 1 has had enough");
    }
    world.barrier();  // throws too: a rank that ended with 0 may decide what hydra returns
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto ended = mpi.run();
  EXPECT_NE(ended.status, 0) << ended.output;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(50)) << ended.output;
}

}  // namespace
}  // namespace lockstep
