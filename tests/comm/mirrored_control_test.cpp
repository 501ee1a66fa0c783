#include "comm/mirrored_control.h"

#include "comm/thread_port.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockstep::comm {
namespace {

// Ranks of a network, each with a control segment of its own, all driven by this thread.
class Ranks {
 public:
  explicit Ranks(int count) {
    const auto ports = ports_of_threads(count);
    std::vector<int> members;
    for (int r = 0; r < count; ++r) {
      members.push_back(r);
    }
    for (int r = 0; r < count; ++r) {
      const auto segment = Segment::create(Control::bytes(count));
      Control::initialise(*segment, count);
      controls_.push_back(std::make_unique<Control>(segment, r, count));
      mirrors_.push_back(std::make_unique<MirroredControl>(ports[static_cast<std::size_t>(r)],
                                                           members, 3, *controls_.back()));
    }
  }
  Control& control(int rank) { return *controls_[static_cast<std::size_t>(rank)]; }
  MirroredControl& mirror(int rank) { return *mirrors_[static_cast<std::size_t>(rank)]; }
  void exchange(int rounds = 1) {
    for (int round = 0; round < rounds; ++round) {
      for (const auto& mirror : mirrors_) {
        mirror->exchange();
      }
    }
  }

 private:
  std::vector<std::unique_ptr<Control>> controls_;
  std::vector<std::unique_ptr<MirroredControl>> mirrors_;
};

Fingerprint numbered(std::uint64_t sequence) {
  Fingerprint fingerprint;
  fingerprint.sequence = sequence;
  fingerprint.set_name("operation " + std::to_string(sequence));
  return fingerprint;
}

TEST(MirroredControl, peers_see_what_a_rank_has_published) {
  Ranks ranks(3);
  ranks.control(1).post(numbered(1));
  ranks.control(1).publish_stepped(4);
  EXPECT_EQ(ranks.control(0).issued(1), 0u);
  ranks.exchange(2);
  for (const int r : {0, 2}) {
    EXPECT_EQ(ranks.control(r).issued(1), 1u);
    EXPECT_EQ(ranks.control(r).stepped(1), 4u);
    EXPECT_TRUE(same(ranks.control(r).posted(1, 1), numbered(1)));
    EXPECT_EQ(ranks.control(r).issued(3 - 1 - r), 0u);
  }
}

TEST(MirroredControl, every_fingerprint_of_a_full_window_arrives_before_its_number) {
  Ranks ranks(2);
  for (std::uint64_t i = 1; i <= Control::kWindow; ++i) {
    ranks.control(0).post(numbered(i));
  }
  std::uint64_t seen = 0;
  for (int round = 0; round < 1000 && seen < Control::kWindow; ++round) {
    ranks.exchange();
    const std::uint64_t issued = ranks.control(1).issued(0);
    EXPECT_GE(issued, seen);
    for (std::uint64_t i = seen + 1; i <= issued; ++i) {
      EXPECT_TRUE(same(ranks.control(1).posted(0, i), numbered(i)));
    }
    seen = issued;
  }
  EXPECT_EQ(seen, Control::kWindow);
}

TEST(MirroredControl, the_first_failure_reaches_everybody_whole) {
  Ranks ranks(3);
  const std::string text(1400, 'x');
  ranks.control(2).fail({Failure::Kind::peer_lost, 1, text});
  ranks.exchange(2);
  for (const int r : {0, 1}) {
    ASSERT_TRUE(ranks.control(r).failed());
    EXPECT_EQ(ranks.control(r).failure().kind, Failure::Kind::peer_lost);
    EXPECT_EQ(ranks.control(r).failure().rank, 1);
    EXPECT_EQ(ranks.control(r).failure().text, text);
  }
}

TEST(MirroredControl, who_leaves_has_said_everything_before) {
  Ranks ranks(2);
  for (std::uint64_t i = 1; i <= 9; ++i) {
    ranks.control(0).post(numbered(i));
  }
  ranks.control(0).leave();
  while (!ranks.control(1).left(0)) {
    ranks.exchange();
    EXPECT_EQ(ranks.control(1).left(0), ranks.control(1).issued(0) == 9u);
  }
}

TEST(MirroredControl, flush_tells_all_of_it_or_says_that_it_has_not) {
  Ranks ranks(2);
  for (std::uint64_t i = 1; i <= 7; ++i) {
    ranks.control(0).post(numbered(i));
  }
  EXPECT_TRUE(ranks.mirror(0).flush(std::chrono::seconds(10)));
  ranks.mirror(1).exchange();
  EXPECT_EQ(ranks.control(1).issued(0), 7u);
}

TEST(MirroredControl, a_rank_with_nothing_new_to_say_still_gives_signs_of_life) {
  Ranks ranks(2);
  ranks.exchange(2);
  const std::int64_t before = ranks.control(1).last_seen_ns(0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ranks.control(1).last_seen_ns(0) == before && std::chrono::steady_clock::now() < end) {
    ranks.exchange();
  }
  EXPECT_GT(ranks.control(1).last_seen_ns(0), before);
}

}  // namespace
}  // namespace lockstep::comm
