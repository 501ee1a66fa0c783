#include "comm/failure.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep::comm {
namespace {

// A record in zeroed memory, as a fresh segment is.
std::unique_ptr<FailureRecord> empty_record() { return std::make_unique<FailureRecord>(); }

TEST(Failure, every_kind_survives_the_way_through_an_exception) {
  using Kind = Failure::Kind;
  for (const Kind kind : {Kind::timed_out, Kind::peer_lost, Kind::mismatch, Kind::poisoned,
                          Kind::usage, Kind::system}) {
    try {
      raise({kind, 3, "what happened"});
    } catch (const Error& error) {
      const Failure failure = failure_of(error, "unused");
      EXPECT_EQ(failure.kind, kind);
      EXPECT_EQ(failure.text, "what happened");
      EXPECT_EQ(failure.rank, kind == Kind::peer_lost ? 3 : -1);
    }
  }
}

TEST(Failure, a_foreign_exception_poisons_and_says_where) {
  const Failure failure = failure_of(std::runtime_error("out of ink"), "rank 2");
  EXPECT_EQ(failure.kind, Failure::Kind::poisoned);
  EXPECT_EQ(failure.text, "rank 2: out of ink");
}

TEST(FailureRecord, keeps_the_first) {
  const auto record = empty_record();
  EXPECT_FALSE(record->set());
  EXPECT_TRUE(record->record({Failure::Kind::peer_lost, 2, "first"}));
  EXPECT_FALSE(record->record({Failure::Kind::mismatch, -1, "second"}));
  ASSERT_TRUE(record->set());
  EXPECT_EQ(record->get().kind, Failure::Kind::peer_lost);
  EXPECT_EQ(record->get().rank, 2);
  EXPECT_EQ(record->get().text, "first");
}

TEST(FailureRecord, cuts_a_text_that_is_too_long) {
  const auto record = empty_record();
  record->record({Failure::Kind::timed_out, -1, std::string(5000, 'x')});
  EXPECT_EQ(record->get().text, std::string(record->get().text.size(), 'x'));
  EXPECT_GT(record->get().text.size(), 1000u);
}

}  // namespace
}  // namespace lockstep::comm
