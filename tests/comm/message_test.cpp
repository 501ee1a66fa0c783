#include "comm/message.h"

#include "comm/networks.h"
#include "comm/plain_checks.h"
#include "comm/texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using test::run_ranks;
using test::text_of;
using test::threw;

// How ranks reach each other.
enum class Way : std::uint8_t { memory, network };

class Messages : public ::testing::TestWithParam<Way> {
 protected:
  static std::vector<Group> groups(int ranks, milliseconds deadline = std::chrono::seconds(60)) {
    return GetParam() == Way::memory ? Group::of_threads(ranks, {.deadline = deadline})
                                     : test::groups_on_a_network(ranks, {.deadline = deadline});
  }
  static void on_ranks(int ranks, const std::function<void(Group&)>& body) {
    auto handles = groups(ranks);
    test::on_ranks(handles, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Messages, ::testing::Values(Way::memory, Way::network),
                         [](const auto& tested) {
                           return tested.param == Way::memory ? "memory" : "network";
                         });

// Each rank to the next one, all sizes and types; a line's length included.
TEST_P(Messages, arrives_as_it_was_sent) {
  for (const int ranks : {2, 3}) {
    on_ranks(ranks, [ranks](Group& group) {
      const int next = (group.rank() + 1) % ranks;
      const int previous = (group.rank() + ranks - 1) % ranks;
      test::for_each_dtype([&]<class T>() {
        constexpr auto kLine = static_cast<std::int64_t>(Line::kBytes / sizeof(T));
        for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000},
                                         kLine - 1, kLine, kLine + 1, 3 * kLine + 5}) {
          auto out = test::filled<T>(count, group.rank(), 1);
          test::Guarded<T> in(static_cast<std::size_t>(count), 1);
          Work sent = group.send(test::span_of(out), next);
          group.recv(test::span_of(in), previous).wait();
          sent.wait();
          test::require_values(test::case_name<T>("recv", group, count), in, 0,
                               [&](std::int64_t i) { return test::value_of<T>(previous, i, 1); });
        }
      });
    });
  }
}

TEST_P(Messages, tens_of_megabytes_go_both_ways_at_once) {
  on_ranks(2, [](Group& group) {
    constexpr std::int64_t kCount = 5'000'003;
    std::vector<float> out(kCount), in(kCount);
    std::iota(out.begin(), out.end(), static_cast<float>(group.rank()));
    Work received = group.recv(std::span(in), 1 - group.rank());
    group.send(std::span(out), 1 - group.rank()).wait();
    received.wait();
    std::iota(out.begin(), out.end(), static_cast<float>(1 - group.rank()));
    ASSERT_EQ(in, out);
  });
}

TEST_P(Messages, messages_of_a_line_keep_their_order_however_they_are_waited_for) {
  on_ranks(2, [](Group& group) {
    constexpr int kMessages = 50;
    std::vector<std::vector<std::int32_t>> values;
    std::vector<Work> works;
    for (int i = 0; i < kMessages; ++i) {
      const auto size = static_cast<std::size_t>(i % 7 == 0 ? 100'000 : i);
      values.emplace_back(size, group.rank() == 0 ? i : -1);
    }
    for (auto& each : values) {
      works.push_back(group.rank() == 0 ? group.send(std::span(each), 1)
                                        : group.recv(std::span(each), 0));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) {
      work->wait();
    }
    for (int i = 0; i < kMessages; ++i) {
      for (const std::int32_t value : values[static_cast<std::size_t>(i)]) {
        ASSERT_EQ(value, i);
      }
    }
  });
}

// Three small messages leave before anybody asks for the first; their memory is used again.
TEST_P(Messages, small_ones_are_sent_ahead_of_their_recv) {
  on_ranks(2, [](Group& group) {
    for (std::int32_t i = 0; i < 3 && group.rank() == 0; ++i) {
      std::array<std::int32_t, 4> values{i, i, i, i};
      group.send(std::span(values), 1).wait();
      values.fill(-1);
    }
    group.barrier();
    for (std::int32_t i = 0; i < 3 && group.rank() == 1; ++i) {
      std::array<std::int32_t, 4> values{};
      Work work = group.recv(std::span(values), 0);
      while (!work.done()) {
      }
      ASSERT_EQ(values, (std::array{i, i, i, i}));
    }
  });
}

// Two ranks exchange messages between collectives of all, which they enter in another order.
TEST_P(Messages, does_not_disturb_what_all_ranks_do) {
  on_ranks(3, [](Group& group) {
    for (int round = 0; round < 30; ++round) {
      std::int64_t value = round, other = 0, sum = 1;
      Work message;
      if (group.rank() == 0) {
        message = group.send(std::span(&value, 1), 2, "note");
      }
      group.all_reduce(std::span(&sum, 1), {.algorithm = Algorithm::ring}).wait();
      ASSERT_EQ(sum, 3);
      if (group.rank() == 2) {
        message = group.recv(std::span(&other, 1), 0, "note");
        message.wait();
        ASSERT_EQ(other, round);
      } else if (group.rank() == 0) {
        message.wait();
      }
    }
    EXPECT_EQ(group.traffic().collectives, 30);
  });
}

TEST_P(Messages, parts_of_the_world_have_lines_of_their_own) {
  on_ranks(3, [](Group& group) {
    auto pair = group.split(group.rank() == 1 ? -1 : 0, -group.rank());
    std::int32_t of_world = group.rank(), of_pair = 10 + group.rank();
    if (group.rank() == 0) {  // 1 in the pair
      Work first = group.send(std::span(&of_world, 1), 2);
      pair->send(std::span(&of_pair, 1), 0).wait();
      first.wait();
    } else if (group.rank() == 2) {
      pair->recv(std::span(&of_pair, 1), 1).wait();
      group.recv(std::span(&of_world, 1), 0).wait();
      ASSERT_EQ(of_pair, 10);
      ASSERT_EQ(of_world, 0);
    }
    group.barrier();
  });
}

TEST_P(Messages, counts_its_payload) {
  on_ranks(3, [](Group& group) {
    std::vector<float> data(100);
    if (group.rank() == 0) {
      group.send(std::span(data), 1).wait();
    } else if (group.rank() == 1) {
      group.recv(std::span(data), 0).wait();
    }
    EXPECT_EQ(group.traffic().sent, group.rank() == 0 ? 400 : 0);
    EXPECT_EQ(group.traffic().received, group.rank() == 1 ? 400 : 0);
    EXPECT_EQ(group.traffic().collectives, 0);
    group.barrier();
  });
}

TEST_P(Messages, another_size_type_or_name_is_named_on_all_ranks) {
  struct Receives {
    std::function<Work(Group&, std::vector<float>&)> call;
    const char* text;
  };
  const std::vector<Receives> cases{
      {[](Group& group, auto& data) { return group.recv(std::span(data).first(9), 0, "weights"); },
       "recv 'weights' f32.9."},
      {[](Group& group, auto& data) {
         return group.recv({data.data(), 10, Dtype::i32}, 0, "weights");
       },
       "recv 'weights' i32.10."},
      {[](Group& group, auto& data) { return group.recv(std::span(data), 0, "biases"); },
       "recv 'biases' f32.10."}};
  for (const Receives& other : cases) {
    auto handles = groups(3);
    const auto outcomes = run_ranks(handles, [&](Group& group) {
      std::vector<float> data(10);
      if (group.rank() == 1) {
        other.call(group, data).wait();
      } else if (group.rank() == 0) {
        group.send(std::span(data), 1, "weights").wait();
      }
      group.barrier();
    });
    for (const auto& outcome : outcomes) {
      EXPECT_TRUE(threw<Mismatch>(outcome)) << text_of(outcome);
      test::expect_match(text_of(outcome),
                         "rank 0 sends rank 1 another message than it receives: "
                         "send 'weights' f32.10.; " +
                             std::string(other.text));
    }
  }
}

TEST_P(Messages, a_sender_that_left_ends_the_wait) {
  auto handles = groups(2);
  const auto outcomes = run_ranks(handles, [](Group& group) {
    if (group.rank() == 0) {
      const Group gone = std::move(group);
      return;
    }
    float value = 0;
    group.recv(std::span(&value, 1), 0).wait();
  });
  EXPECT_TRUE(threw<PeerLost>(outcomes[1])) << text_of(outcomes[1]);
}

// Both wait, and so are alive; what is sent after the end goes nowhere.
TEST_P(Messages, a_sender_that_never_sends_ends_the_wait) {
  auto handles = groups(2, milliseconds(300));
  const auto outcomes = run_ranks(handles, [](Group& group) {
    float value = 0;
    group.recv(std::span(&value, 1), 1 - group.rank(), "late").wait();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<TimedOut>(outcome)) << text_of(outcome);
    test::expect_match(text_of(outcome),
                       "waits for 'late' .recv f32.1., #1. and rank [01] did not do its part "
                       "within the deadline of 300 ms");
  }
}

TEST_P(Messages, one_that_nobody_receives_ends_the_wait_where_it_does_not_fit) {
  if (GetParam() == Way::network) {
    return;  // threads' ports take everything in
  }
  auto handles = groups(2, milliseconds(300));
  const auto outcomes = run_ranks(handles, [](Group& group) {
    std::vector<float> values(100'000);
    if (group.rank() == 0) {
      group.send(std::span(values), 1, "large").wait();
    }
  });
  EXPECT_TRUE(threw<TimedOut>(outcomes[0])) << text_of(outcomes[0]);
}

TEST_P(Messages, that_is_not_waited_for_ends_the_group) {
  auto handles = groups(2);
  const auto outcomes = run_ranks(handles, [](Group& group) {
    float value = 0;
    if (group.rank() == 0) {
      { const Work dropped = group.recv(std::span(&value, 1), 1, "dropped"); }
    }
    group.barrier();
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(threw<GroupPoisoned>(outcome)) << text_of(outcome);
    test::expect_match(text_of(outcome), "rank 0 dropped 'dropped' .recv f32.1., #1. without");
  }
}

// What was sent before the sender left still arrives.
TEST_P(Messages, outlives_its_sender) {
  auto handles = groups(2);
  const auto outcomes = run_ranks(handles, [](Group& group) {
    std::vector<float> values(100, 5.0f);
    if (group.rank() == 0) {
      group.send(std::span(values), 1).wait();
      const Group gone = std::move(group);
      return;
    }
    std::this_thread::sleep_for(milliseconds(50));
    std::fill(values.begin(), values.end(), 0.0f);
    group.recv(std::span(values), 0).wait();
    EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0.0f), 500.0f);
  });
  EXPECT_EQ(outcomes[1], nullptr) << text_of(outcomes[1]);
}

TEST_P(Messages, to_oneself_or_nobody_is_refused) {
  on_ranks(2, [](Group& group) {
    float value = 0;
    for (const int peer : {group.rank(), -1, 2}) {
      EXPECT_THROW(group.send(std::span(&value, 1), peer), UsageError);
      EXPECT_THROW(group.recv(std::span(&value, 1), peer), UsageError);
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
