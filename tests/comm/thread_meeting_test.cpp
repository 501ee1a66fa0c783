#include "comm/exchanges.h"
#include "comm/meeting.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using test::exchange_of;

struct Result {
  std::shared_ptr<Segment> segment;
  std::string error;  // what hold() threw
  bool timed_out = false;
};

Result hold(Meeting& meeting, const Exchange& exchange) {
  try {
    return {meeting.hold(exchange), "", false};
  } catch (const TimedOut& error) {
    return {nullptr, error.what(), true};
  } catch (const std::exception& error) {
    return {nullptr, error.what(), false};
  }
}

// Holds one exchange over `size` threads, each with what `change` makes of its part.
std::vector<Result> hold_all(
    Meeting& meeting, int size, const std::function<void(Exchange&)>& change = [](Exchange&) {}) {
  std::vector<Result> results(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Exchange exchange = exchange_of(r, size);
      change(exchange);
      results[static_cast<std::size_t>(r)] = hold(meeting, exchange);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return results;
}

TEST(ThreadMeeting, all_get_the_same_segment_initialised_and_prepared_by_everybody) {
  const auto meeting = meeting_of_threads();
  std::atomic<int> prepared = 0;
  const auto results = hold_all(*meeting, 4, [&](Exchange& exchange) {
    exchange.initialise = [](Segment& segment) { segment.data()[0] = std::byte{9}; };
    exchange.prepare = [&](const std::shared_ptr<Segment>& segment) {
      EXPECT_EQ(segment->data()[0], std::byte{9});
      ++prepared;
    };
  });
  EXPECT_EQ(prepared, 4);
  for (const auto& result : results) {
    ASSERT_NE(result.segment, nullptr) << result.error;
    EXPECT_EQ(result.segment, results[0].segment);
  }
}

TEST(ThreadMeeting, what_one_member_throws_ends_it_for_all) {
  const auto meeting = meeting_of_threads();
  for (const int thrower : {0, 2}) {
    const auto results = hold_all(*meeting, 3, [&](Exchange& exchange) {
      if (exchange.rank == thrower) {
        exchange.prepare = [](const std::shared_ptr<Segment>&) {
          throw SystemError("fallocate: no space");
        };
      }
    });
    for (const auto& result : results) {
      EXPECT_EQ(result.error, "fallocate: no space");
    }
  }
}

TEST(ThreadMeeting, a_refusal_before_creation_reaches_all) {
  const auto meeting = meeting_of_threads();
  const auto results = hold_all(*meeting, 3, [](Exchange& exchange) {
    exchange.before_create = [] { throw SystemError("too little memory"); };
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error, "too little memory");
  }
}

TEST(ThreadMeeting, those_who_came_learn_who_did_not) {
  const auto meeting = meeting_of_threads();
  Exchange exchange = exchange_of(1, 4);
  exchange.deadline = milliseconds(150);
  const Result result = hold(*meeting, exchange);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.error, "meeting: ranks 0, 2 and 3 never came within 150 ms");
}

TEST(ThreadMeeting, a_check_that_throws_ends_the_wait_for_all) {
  const auto meeting = meeting_of_threads();
  std::atomic<bool> failed = false;
  std::vector<Result> results(2);
  std::vector<std::thread> threads;
  for (const int r : {0, 1}) {
    threads.emplace_back([&, r] {
      Exchange exchange = exchange_of(r, 3);  // rank 2 never comes
      exchange.check = [&] {
        if (failed) {
          throw PeerLost(2, "rank 2 died");
        }
      };
      results[static_cast<std::size_t>(r)] = hold(*meeting, exchange);
    });
  }
  failed = true;
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(results[0].error, "rank 2 died");
  EXPECT_EQ(results[1].error, "rank 2 died");
}

TEST(ThreadMeeting, keys_keep_exchanges_apart_and_may_be_used_again) {
  const auto meeting = meeting_of_threads();
  const auto first = hold_all(*meeting, 2);
  const auto again = hold_all(*meeting, 2);
  EXPECT_NE(first[0].segment, again[0].segment);
  const auto alone = hold_all(*meeting, 2, [](Exchange& exchange) {
    exchange.key += std::to_string(exchange.rank);
    exchange.rank = 0;
    exchange.size = 1;
  });
  EXPECT_NE(alone[0].segment, alone[1].segment);
}

}  // namespace
}  // namespace lockstep::comm
