#include "comm/shared_transport.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace lockstep::comm {
namespace {

std::byte* bytes_of(std::vector<std::uint8_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

Piece piece_of(std::vector<std::uint8_t>& values) {
  return {bytes_of(values), static_cast<std::int64_t>(values.size())};
}

std::vector<std::uint8_t> counted(std::size_t size, std::uint8_t first) {
  std::vector<std::uint8_t> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<std::uint8_t>(first + i * 7 + i / 251);
  }
  return values;
}

// Ranks of one control segment, all in this thread or each in its own.
class SharedTransportTest : public ::testing::Test {
 protected:
  explicit SharedTransportTest(int ranks = 3) {
    const auto segment = Segment::create(Control::bytes(ranks));
    Control::initialise(*segment, ranks);
    for (int r = 0; r < ranks; ++r) {
      controls_.push_back(std::make_unique<Control>(segment, r, ranks));
      transports_.push_back(
          std::make_unique<SharedTransport>(*controls_.back(), Control::Lane::collective));
    }
  }
  SharedTransport& rank(std::size_t r) { return *transports_.at(r); }
  Control& control(std::size_t r) { return *controls_.at(r); }

 private:
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<std::unique_ptr<SharedTransport>> transports_;
};

TEST_F(SharedTransportTest, messages_of_a_line_come_in_order_and_are_counted) {
  auto first = counted(10, 1), second = counted(300, 2);
  std::vector<std::uint8_t> got_first(10), got_second(300);
  EXPECT_EQ(rank(0).send(1, {piece_of(first)}), 1u);
  EXPECT_EQ(rank(0).send(1, {piece_of(second)}), 2u);
  EXPECT_EQ(rank(0).sent(1), 0u);
  rank(0).progress();
  EXPECT_EQ(rank(0).sent(1), 2u);  // they fit the line, so their memory is free again
  first.assign(10, 0);
  EXPECT_EQ(rank(1).receive(0, {piece_of(got_first)}), 1u);
  rank(1).progress();
  EXPECT_EQ(rank(1).received(0), 1u);
  EXPECT_EQ(rank(1).receive(0, {piece_of(got_second)}), 2u);
  EXPECT_EQ(rank(1).received(0), 1u);
  rank(1).progress();
  EXPECT_EQ(rank(1).received(0), 2u);
  EXPECT_EQ(got_first, counted(10, 1));
  EXPECT_EQ(got_second, second);
}

TEST_F(SharedTransportTest, pieces_lie_in_the_message_one_behind_the_other) {
  auto a = counted(3, 1), b = counted(5, 2);
  std::vector<std::uint8_t> got(8);
  rank(2).send(0, {piece_of(a), {nullptr, 0}, piece_of(b), {nullptr, 0}});
  rank(2).progress();
  rank(0).receive(2, {{bytes_of(got), 3}, {nullptr, 0}, {bytes_of(got) + 3, 5}, {nullptr, 0}});
  rank(0).progress();
  EXPECT_EQ(rank(0).received(2), 1u);
  std::vector<std::uint8_t> expected = a;
  expected.insert(expected.end(), b.begin(), b.end());
  EXPECT_EQ(got, expected);
}

TEST_F(SharedTransportTest, lines_know_nothing_of_each_other) {
  auto to_one = counted(4, 1), to_two = counted(4, 2), back = counted(4, 3);
  std::vector<std::uint8_t> at_one(4), at_two(4), at_zero(4);
  rank(0).send(1, {piece_of(to_one)});
  rank(0).send(2, {piece_of(to_two)});
  rank(1).send(0, {piece_of(back)});
  rank(0).receive(1, {piece_of(at_zero)});
  rank(1).receive(0, {piece_of(at_one)});
  rank(2).receive(0, {piece_of(at_two)});
  rank(2).progress();
  EXPECT_EQ(rank(2).received(0), 0u);
  for (const std::size_t r : {0u, 1u, 2u, 0u}) {
    rank(r).progress();
  }
  EXPECT_EQ(at_one, to_one);
  EXPECT_EQ(at_two, to_two);
  EXPECT_EQ(at_zero, back);

  SharedTransport other(control(0), Control::Lane::pair);
  other.receive(1, {piece_of(at_zero)});
  rank(1).send(0, {piece_of(back)});
  rank(1).progress();
  other.progress();
  EXPECT_EQ(other.received(1), 0u);  // another lane
}

// One that is longer than a line, and ends anywhere in it: the sender goes on when there is room.
TEST_F(SharedTransportTest, a_message_may_be_longer_than_its_line) {
  for (const std::int64_t more : {-1, 0, 1, 1000}) {
    auto sent = counted(static_cast<std::size_t>(2 * Line::kBytes + more), 9);
    std::vector<std::uint8_t> got(sent.size());
    const std::uint64_t number = rank(0).send(1, {piece_of(sent)});
    rank(1).receive(0, {piece_of(got)});
    int turns = 0;
    for (; rank(1).received(0) < number; ++turns) {
      rank(0).progress();
      rank(1).progress();
      ASSERT_LT(turns, 4);
    }
    EXPECT_GE(turns, 2);
    EXPECT_EQ(rank(0).sent(1), number);
    EXPECT_EQ(got, sent) << more;
  }
}

TEST_F(SharedTransportTest, ranks_in_threads_exchange_many_messages) {
  constexpr int kMessages = 2'000;
  const auto exchange = [&](std::size_t own, int peer) {
    std::uint8_t seen = 0;
    for (int i = 0; i < kMessages; ++i) {
      const auto size = static_cast<std::size_t>(1 + i * 37 % 5'000);
      auto mine = counted(size, static_cast<std::uint8_t>(i + static_cast<int>(own)));
      std::vector<std::uint8_t> theirs(size);
      const auto out = rank(own).send(peer, {piece_of(mine)});
      const auto in = rank(own).receive(peer, {piece_of(theirs)});
      while (rank(own).sent(peer) < out || rank(own).received(peer) < in) {
        rank(own).progress();
        std::this_thread::yield();
      }
      if (theirs != counted(size, static_cast<std::uint8_t>(i + peer))) {
        ++seen;
      }
    }
    EXPECT_EQ(seen, 0);
  };
  std::thread other([&] { exchange(1, 0); });
  exchange(0, 1);
  other.join();
}

TEST_F(SharedTransportTest, refuses_what_would_never_arrive) {
  std::vector<std::uint8_t> some(1);
  EXPECT_THROW(rank(1).send(1, {piece_of(some)}), InvariantBroken);
  EXPECT_THROW(rank(1).receive(1, {piece_of(some)}), InvariantBroken);
  EXPECT_THROW(rank(1).send(0, {}), InvariantBroken);
  EXPECT_THROW(rank(1).receive(0, {{bytes_of(some), 0}}), InvariantBroken);
}

}  // namespace
}  // namespace lockstep::comm
