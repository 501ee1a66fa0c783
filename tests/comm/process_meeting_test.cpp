// Exchanges between processes beyond what process_group_test shows through whole groups.
#include "comm/exchanges.h"
#include "comm/meeting.h"
#include "comm/processes.h"
#include "comm/unix_socket.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using test::exchange_of;
using test::Processes;

// Starts `size` processes that hold one exchange, each with what `change` makes of its part.
void hold_all(Processes& ranks, int size, const std::function<void(Exchange&)>& change) {
  for (int r = 0; r < size; ++r) {
    ranks.start([&ranks, size, change, r] {
      Exchange exchange = exchange_of(r, size);
      change(exchange);
      meeting_of_processes(ranks.job())->hold(exchange);
    });
  }
}

TEST(ProcessMeeting, what_one_member_throws_ends_it_for_all_with_its_kind) {
  for (const int thrower : {0, 2}) {
    Processes ranks;
    hold_all(ranks, 3, [&](Exchange& exchange) {
      if (exchange.rank == thrower) {
        exchange.prepare = [](const std::shared_ptr<Segment>&) {
          throw SystemError("fallocate: no space");
        };
      }
    });
    for (int r = 0; r < 3; ++r) {
      EXPECT_EQ(ranks.end(r).text, "SystemError: fallocate: no space");
    }
  }
}

TEST(ProcessMeeting, a_foreign_exception_reaches_the_others_with_its_rank) {
  Processes ranks;
  hold_all(ranks, 2, [](Exchange& exchange) {
    if (exchange.rank == 1) {
      exchange.prepare = [](const std::shared_ptr<Segment>&) { throw std::bad_alloc(); };
    }
  });
  EXPECT_EQ(ranks.end(0).text, "GroupPoisoned: meeting, rank 1: std::bad_alloc");
}

TEST(ProcessMeeting, a_refusal_before_creation_reaches_all) {
  Processes ranks;
  hold_all(ranks, 3, [](Exchange& exchange) {
    exchange.before_create = [] { throw SystemError("too little memory"); };
  });
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(ranks.end(r).text, "SystemError: too little memory");
  }
}

TEST(ProcessMeeting, a_member_that_dies_while_it_prepares_is_named) {
  for (const int dying : {0, 1}) {
    Processes ranks;
    hold_all(ranks, 3, [&](Exchange& exchange) {
      if (exchange.rank == dying) {
        exchange.prepare = [](const std::shared_ptr<Segment>&) { ::_exit(9); };
      }
    });
    for (int r = 0; r < 3; ++r) {
      if (r != dying) {
        EXPECT_EQ(ranks.end(r).text, "PeerLost: meeting: rank " + std::to_string(dying) +
                                         " died or gave up on the way");
      }
    }
  }
}

TEST(ProcessMeeting, a_member_that_takes_forever_to_prepare_is_named) {
  Processes ranks;
  hold_all(ranks, 3, [](Exchange& exchange) {
    exchange.deadline = milliseconds(1500);
    if (exchange.rank == 1) {
      exchange.prepare = [](const std::shared_ptr<Segment>&) {
        std::this_thread::sleep_for(milliseconds(5000));
      };
    }
  });
  for (const int r : {0, 2}) {
    EXPECT_EQ(ranks.end(r).text,
              "TimedOut: meeting: rank 1 did not finish its part within 1500 ms");
  }
}

// Others of the same user may connect by accident or curiosity; the exchange goes on.
TEST(ProcessMeeting, strangers_are_turned_away) {
  Processes ranks;
  hold_all(ranks, 1, [](Exchange& exchange) {
    exchange.size = 2;
    exchange.deadline = milliseconds(1000);
  });
  // The name is not known here: a member of another key must not be taken for one of this.
  ranks.start([&] {
    Exchange exchange = exchange_of(1, 2);
    exchange.key = "another key";
    exchange.deadline = milliseconds(300);
    meeting_of_processes(ranks.job())->hold(exchange);
  });
  EXPECT_EQ(ranks.end(1).text, "TimedOut: meeting: rank 0 never came within 300 ms");
  EXPECT_EQ(ranks.end(0).text, "TimedOut: meeting: rank 1 never came within 1000 ms");
}

}  // namespace
}  // namespace lockstep::comm
