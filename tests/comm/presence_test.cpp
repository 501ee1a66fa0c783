#include "comm/presence.h"

#include "comm/processes.h"

#include <gtest/gtest.h>

namespace lockstep::comm {
namespace {

// Waits for a byte, or for the other end's death.
void wait_for(int pipe) {
  char byte = 0;
  static_cast<void>(::read(pipe, &byte, 1));
}

TEST(Presence, another_process_is_seen_until_it_dies) {
  const auto segment = Segment::create(page_bytes());
  const Presence own(segment, 0);
  int holds[2];
  ASSERT_EQ(::pipe(holds), 0);
  test::Processes ranks;
  const pid_t process = ranks.start([&] {
    const Presence theirs(segment, 1);
    static_cast<void>(::write(holds[1], "x", 1));
    ::pause();
  });
  wait_for(holds[0]);
  EXPECT_TRUE(own.holder(1).alive);
  EXPECT_EQ(own.holder(1).process, process);
  EXPECT_FALSE(own.holder(2).alive);
  ::kill(process, SIGKILL);
  ranks.end(0);
  EXPECT_FALSE(own.holder(1).alive);
  ::close(holds[0]);
  ::close(holds[1]);
}

TEST(Presence, a_forked_child_does_not_hold_its_parents_place) {
  const auto segment = Segment::create(page_bytes());
  test::Processes ranks;
  ranks.start([&] {
    const Presence parent(segment, 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const Presence other(segment, 1);
      test::end_process(other.holder(0).alive ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0 || parent.holder(1).alive) {
      throw std::runtime_error("locks follow the wrong process");
    }
  });
  const auto ended = ranks.end(0);
  EXPECT_TRUE(ended.clean()) << ended.text;
}

TEST(Presence, two_processes_cannot_be_one_rank) {
  const auto segment = Segment::create(page_bytes());
  const Presence own(segment, 0);
  test::Processes ranks;
  ranks.start([&] { const Presence again(segment, 0); });
  EXPECT_EQ(ranks.end(0).text.rfind("SystemError: locking rank 0's byte", 0), 0u);
}

}  // namespace
}  // namespace lockstep::comm
