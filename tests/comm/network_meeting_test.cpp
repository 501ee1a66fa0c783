#include "comm/network_meeting.h"

#include "comm/thread_port.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::comm {
namespace {

constexpr std::chrono::milliseconds kLong = std::chrono::seconds(60);

std::vector<Acquaintance> meet(const std::vector<std::string>& hosts) {
  const auto ports = ports_of_threads(static_cast<int>(hosts.size()));
  std::vector<Acquaintance> met(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    threads.emplace_back([&, r] { met[r] = meet_over(*ports[r], 9, hosts[r], kLong); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return met;
}

TEST(NetworkMeeting, all_learn_who_is_on_which_host_and_one_nonce) {
  const auto met = meet({"b", "a", "b", "c", "a"});
  for (const Acquaintance& one : met) {
    EXPECT_EQ(one.host_of, (std::vector<int>{0, 1, 0, 2, 1}));
    EXPECT_EQ(one.hosts(), 3);
    EXPECT_EQ(one.job, met[0].job);
  }
  EXPECT_EQ(met[0].job.size(), 32u);
  EXPECT_NE(meet({"a", "a"})[0].job, met[0].job);
}

TEST(NetworkMeeting, one_process_meets_itself) {
  EXPECT_EQ(meet({"alone"})[0].host_of, std::vector<int>{0});
}

TEST(NetworkMeeting, who_never_answers_is_named) {
  const auto ports = ports_of_threads(3);
  try {
    meet_over(*ports[1], 9, "here", std::chrono::milliseconds(50));
    FAIL() << "expected TimedOut";
  } catch (const TimedOut& error) {
    EXPECT_NE(std::string(error.what()).find("ranks 0 and 2 did not answer"), std::string::npos)
        << error.what();
  }
}

TEST(NetworkMeeting, a_host_has_one_identity) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_GT(host_identity().size(), 36u);  // a boot id and a name
}

}  // namespace
}  // namespace lockstep::comm
