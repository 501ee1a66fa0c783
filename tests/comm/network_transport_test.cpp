#include "comm/network_transport.h"

#include "comm/thread_port.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::comm {
namespace {

Piece piece_of(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), static_cast<std::int64_t>(text.size())};
}

// Ranks 0 and 1 of a group are ranks 2 and 0 of the port.
class NetworkTransportTest : public ::testing::Test {
 protected:
  std::vector<std::shared_ptr<Port>> ports_ = ports_of_threads(3);
  std::vector<int> members_{2, 0};
  NetworkTransport first_{ports_[2], members_, 4};
  NetworkTransport second_{ports_[0], members_, 4};

  void progress() {
    first_.progress();
    second_.progress();
  }
};

TEST_F(NetworkTransportTest, pieces_arrive_in_their_places_and_messages_in_order) {
  std::string left = "abc";
  std::string right = "defgh";
  std::string last = "xy";
  EXPECT_EQ(first_.send(1, {piece_of(left), {}, piece_of(right)}), 1u);
  EXPECT_EQ(first_.send(1, {piece_of(last)}), 2u);
  std::string got_left(3, '.');
  std::string got_right(5, '.');
  std::string got_last(2, '.');
  EXPECT_EQ(second_.receive(0, {piece_of(got_left), {}, piece_of(got_right)}), 1u);
  progress();
  EXPECT_EQ(second_.received(0), 1u);
  EXPECT_EQ(first_.sent(1), 2u);
  EXPECT_EQ(second_.receive(0, {piece_of(got_last)}), 2u);
  progress();
  EXPECT_EQ(second_.received(0), 2u);
  EXPECT_EQ(got_left + got_right + got_last, "abcdefghxy");
}

TEST_F(NetworkTransportTest, lines_and_directions_know_nothing_of_each_other) {
  std::string ask = "?";
  std::string answer = "!";
  std::string asked(1, '.');
  std::string answered(1, '.');
  second_.receive(0, {piece_of(asked)});
  first_.receive(1, {piece_of(answered)});
  second_.send(0, {piece_of(answer)});
  progress();
  EXPECT_EQ(first_.received(1), 1u);
  EXPECT_EQ(second_.received(0), 0u);
  EXPECT_EQ(answered, "!");
  first_.send(1, {piece_of(ask)});
  progress();
  EXPECT_EQ(second_.received(0), 1u);
  EXPECT_EQ(asked, "?");
}

TEST_F(NetworkTransportTest, nothing_is_written_after_giving_up) {
  std::string asked(1, '.');
  std::string rest(2, '.');
  second_.receive(0, {piece_of(asked), piece_of(rest)});
  second_.give_up();
  std::string late = "x";
  std::string more = "yz";
  first_.send(1, {piece_of(late), piece_of(more)});
  progress();
  EXPECT_EQ(asked + rest, "...");
  EXPECT_EQ(second_.received(0), 0u);
}

}  // namespace
}  // namespace lockstep::comm
