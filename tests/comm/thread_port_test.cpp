#include "comm/thread_port.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep::comm {
namespace {

using Word = std::array<std::byte, 1>;

Word word(int value) { return {static_cast<std::byte>(value)}; }

TEST(ThreadPort, transfers_of_a_line_match_in_order_whoever_is_first) {
  const auto ports = ports_of_threads(2);
  EXPECT_EQ(ports[1]->rank(), 1);
  EXPECT_EQ(ports[1]->size(), 2);
  Word first{};
  Word second{};
  auto early = ports[1]->receive(0, 5, first);
  EXPECT_FALSE(early->done());
  EXPECT_TRUE(ports[0]->send(1, 5, word(7))->done());
  EXPECT_TRUE(ports[0]->send(1, 5, word(8))->done());
  auto late = ports[1]->receive(0, 5, second);
  EXPECT_TRUE(early->done());
  EXPECT_TRUE(late->done());
  EXPECT_EQ(first, word(7));
  EXPECT_EQ(second, word(8));
}

TEST(ThreadPort, channels_senders_and_receivers_are_apart) {
  const auto ports = ports_of_threads(3);
  Word got{};
  auto receive = ports[2]->receive(0, 1, got);
  ports[0]->send(2, 0, word(1));
  ports[1]->send(2, 1, word(2));
  ports[0]->send(1, 1, word(3));
  EXPECT_FALSE(receive->done());
  ports[0]->send(2, 1, word(4));
  EXPECT_TRUE(receive->done());
  EXPECT_EQ(got, word(4));
}

TEST(ThreadPort, what_is_cancelled_is_not_written) {
  const auto ports = ports_of_threads(2);
  Word cancelled{};
  Word next{};
  ports[1]->receive(0, 0, cancelled)->cancel();
  auto receive = ports[1]->receive(0, 0, next);
  ports[0]->send(1, 0, word(9));
  EXPECT_TRUE(receive->done());
  EXPECT_EQ(cancelled, word(0));
  EXPECT_EQ(next, word(9));
}

}  // namespace
}  // namespace lockstep::comm
