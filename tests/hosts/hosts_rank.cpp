// A rank of hosts_test.cpp: does what its first word says, exits with 0 when that went as it must.
#include "comm/random_collectives.h"
#include "lockstep/group.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace lockstep {
namespace {

using Words = std::vector<std::string>;
constexpr std::chrono::seconds kPatience{60};

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string host_name() {
  std::string name(64, '\0');
  ::gethostname(name.data(), name.size());
  return name.c_str();
}

// "lockstep3": 3.
int own_host() { return std::stoi(host_name().substr(std::string("lockstep").size())); }

Group join(std::chrono::milliseconds deadline = kPatience) {
  return Group::from_environment({.deadline = deadline});
}

// Every collective by every algorithm that these hosts allow, in several types and sizes.
int collectives(const Words&) {
  Group world = join();
  const int per_host = test::hosts_in(world, own_host());
  std::mt19937_64 random(7);
  int run = 0;
  for (const Algorithm algorithm : kAlgorithms) {
    for (const comm::Kind kind : test::kCollectives) {
      // direct is for memory that ranks share.
      if (algorithm == Algorithm::direct || !test::can(kind, algorithm, world.size(), per_host)) {
        continue;
      }
      for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::i64, Dtype::f64}) {
        test::Draw draw(random);
        draw.kind = kind;
        test::for_each_dtype([&]<class T>() {
          if (DtypeOf<T>::value == dtype) {
            test::run_draw<T>(world, draw, algorithm);
          }
        });
        ++run;
      }
    }
    if (test::can(comm::Kind::all_reduce, algorithm, world.size(), per_host) &&
        algorithm != Algorithm::direct) {
      test::check_all_reduce<float>(world, 300'001, {.algorithm = algorithm});
    }
  }
  auto part = world.split(world.rank() % 2, world.rank());
  test::check_all<float>(*part, 1001);
  world.barrier();
  say("rank " + std::to_string(world.rank()) + " of " + std::to_string(world.size()) + " on " +
      host_name() + ", " + std::to_string(per_host) + " per host: " + std::to_string(run) +
      " collectives are right");
  return 0;
}

// Bytes that this host has put on its cable so far.
std::int64_t bytes_sent_by_host() {
  std::ifstream devices("/proc/self/net/dev");
  for (std::string line; std::getline(devices, line);) {
    if (const auto name = line.find("eth0:"); name != std::string::npos) {
      std::istringstream numbers(line.substr(name + 5));
      std::int64_t number = 0;
      for (int i = 0; i < 9; ++i) {  // eight about what came in, then bytes that went out
        numbers >> number;
      }
      return number;
    }
  }
  throw std::runtime_error("no eth0 in /proc/self/net/dev");
}

// "host lockstep1 sent 1.02 of the buffer": all_reduces of 4 MiB by the algorithm that is named.
int bytes_per_host(const Words& words) {
  constexpr int kTimes = 4;
  constexpr std::int64_t kCount = 1 << 20;
  Group world = join();
  const ReduceOptions options{.algorithm = algorithm_named(words.at(0)).value()};
  test::check_all_reduce<float>(world, kCount, options);
  world.barrier();
  const std::int64_t before = bytes_sent_by_host();
  world.barrier();
  for (int i = 0; i < kTimes; ++i) {
    test::check_all_reduce<float>(world, kCount, options);
  }
  world.barrier();
  const std::int64_t sent = bytes_sent_by_host() - before;
  world.barrier();
  say("host " + host_name() + " sent " +
      std::to_string(static_cast<double>(sent) / (kTimes * kCount * sizeof(float))) +
      " of the buffer");
  return 0;
}

// Waits until every rank has left its word in the folder: mpirun ends the job when one leaves.
void wait_for_all(const std::string& folder, int ranks) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto count = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  while (count() < ranks && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

template <class E>
bool is(const GroupError& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

// words: folder, the program that pulls cables, deadline in seconds. Rank 0 pulls that of the last
// host, while all add; each rank writes what it gets into the folder, since what the cut host
// prints goes nowhere.
int cut(const Words& words) {
  const std::string folder = words.at(0);
  Group world = join(std::chrono::seconds(std::stoi(words.at(2))));
  const int ranks = world.size();
  const int rank = world.rank();
  const auto pull = [&](const char* what) {
    return std::system((words.at(1) + " " + std::to_string(ranks) + " " + what).c_str());
  };
  test::check_all_reduce<float>(world, 250'000, {});
  world.barrier();
  std::string got = "no error";
  try {
    if (rank == 0 && pull("down") != 0) {
      throw std::runtime_error("can't pull the cable");
    }
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      test::check_all_reduce<float>(world, 250'000, {.name = "sum"});
    }
  } catch (const GroupError& error) {
    got = std::string(is<TimedOut>(error)   ? "TimedOut"
                      : is<PeerLost>(error) ? "PeerLost"
                                            : "?") +
          ": " + error.what();
  }
  const std::string file = folder + "/" + std::to_string(rank);
  std::ofstream(file + ".partial") << got;
  std::filesystem::rename(file + ".partial", file);
  wait_for_all(folder, ranks);
  return rank == 0 ? pull("up") : 0;
}

// The status that is named after the rank's number, else 0: "1=3".
int exit_with(const Words& words) {
  const int rank = [] {
    Group world = join();
    world.barrier();
    return world.rank();
  }();
  const std::string own = std::to_string(rank) + "=";
  for (const std::string& word : words) {
    if (word.starts_with(own)) {
      return std::stoi(word.substr(own.size()));
    }
  }
  return 0;
}

int show_variables(const Words& words) {
  Group world = join();
  std::string line = "rank " + std::to_string(world.rank()) + " on " + host_name();
  for (const std::string& name : words) {
    const char* const value = std::getenv(name.c_str());
    line += " " + name + "=" + (value == nullptr ? "(unset)" : value);
  }
  say(line);
  return 0;
}

// When all are there rank 0 interrupts the process that is named; the others wait for ever.
int interrupt(const Words& words) {
  Group world = join();
  world.barrier();
  if (world.rank() == 0) {
    ::kill(std::stoi(words.at(0)), SIGINT);
  }
  while (true) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

const std::map<std::string, std::function<int(const Words&)>> kModes{
    {"collectives", collectives}, {"bytes", bytes_per_host},     {"cut", cut},
    {"exit", exit_with},          {"variables", show_variables}, {"interrupt", interrupt},
};

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::kModes.at(argc > 1 ? argv[1] : "")({argv + 2, argv + argc});
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
