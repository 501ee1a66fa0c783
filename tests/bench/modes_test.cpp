#include "bench/train/modes.h"

#include "lockstep/error.h"

#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

Words names_of(const std::vector<Mode>& modes) {
  Words names;
  for (const Mode& mode : modes) {
    names.push_back(mode.name);
  }
  return names;
}

template <class Call>
std::string refusal(Call call) {
  try {
    call();
    return "accepted";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Modes, names_say_what_kind_they_are) {
  EXPECT_EQ(mode_named("apart").kind, Kind::apart);
  EXPECT_EQ(mode_named("threads").kind, Kind::threads);
  EXPECT_EQ(mode_named("zero2").kind, Kind::stage);
  EXPECT_EQ(mode_named("pytorch-fsdp2-malloc").kind, Kind::pytorch);
  EXPECT_EQ(mode_named("deepspeed-zero1").kind, Kind::deepspeed);
  EXPECT_EQ(package_of(mode_named("ddp")), "");
  EXPECT_EQ(package_of(mode_named("pytorch-ddp")), "torch");
  EXPECT_EQ(package_of(mode_named("deepspeed-zero3")), "deepspeed");
}

TEST(Modes, data_parallel_is_what_ends_with_the_same_weights_everywhere) {
  for (const char* name : {"ddp", "zero3", "pytorch-ddp", "pytorch-zero1-malloc", "pytorch-fsdp2",
                           "deepspeed-zero2"}) {
    EXPECT_TRUE(is_data_parallel(mode_named(name))) << name;
  }
  for (const char* name : {"apart", "threads", "pytorch-none", "pytorch-none-malloc"}) {
    EXPECT_FALSE(is_data_parallel(mode_named(name))) << name;
  }
}

TEST(Modes, unknown_names_and_repeats_are_refused) {
  for (const char* name : {"hybrid", "single", "ddp-malloc", "apart-malloc", "-malloc",
                           "pytorch-none-malloc-malloc", "deepspeed-zero4"}) {
    const std::string text = refusal([&] { mode_named(name); });
    EXPECT_NE(text.find("--stages " + std::string(name) + ": use some of apart, threads, ddp"),
              std::string::npos)
        << text;
  }
  EXPECT_NE(refusal([] {
              modes_named({"ddp", "apart", "ddp"});
            }).find("ddp twice"),
            std::string::npos);
}

TEST(Modes, every_peer_has_its_counterpart_among_ours) {
  EXPECT_EQ(names_of(peers()),
            (Words{"pytorch-none", "pytorch-none-malloc", "pytorch-ddp", "pytorch-zero1",
                   "pytorch-fsdp2", "deepspeed-zero1", "deepspeed-zero2", "deepspeed-zero3"}));
  for (const Mode& peer : peers()) {
    EXPECT_TRUE(is_peer(peer)) << peer.name;
    EXPECT_FALSE(is_peer(mode_named(counterpart_of(peer)))) << peer.name;
  }
  EXPECT_EQ(counterpart_of(mode_named("pytorch-fsdp2-malloc")), "zero3");
  EXPECT_EQ(counterpart_of(mode_named("ddp")), "");
}

TEST(Sweeps, go_from_one_bad_end_to_the_other) {
  const auto buckets = swept("bucket", modes_named(stages_for("bucket")));
  EXPECT_EQ(names_of(buckets), (Words{"apart", "ddp bucket 0 (one per parameter)",
                                      "ddp bucket 1 MB", "ddp bucket 5 MB", "ddp bucket 25 MB",
                                      "ddp bucket 100 MB", "ddp bucket of all"}));
  EXPECT_EQ(buckets[1].dials.bucket_mb, 0);
  EXPECT_EQ(buckets[5].dials.bucket_mb, 100);
  EXPECT_EQ(buckets[5].stage, "ddp");
  EXPECT_FALSE(buckets[5].dials.overlap);
  const auto units = swept("unit", modes_named(stages_for("unit")));
  ASSERT_EQ(units.size(), 5u);
  EXPECT_EQ(units[1].dials.unit_blocks, 1);
  EXPECT_EQ(units[4].name, "zero3 unit of all blocks");
  const auto overlaps = swept("overlap", modes_named({"zero2", "threads", "zero3"}));
  EXPECT_EQ(names_of(overlaps), (Words{"zero2 overlap on", "zero2 overlap off", "threads",
                                       "zero3 overlap on", "zero3 overlap off"}));
  EXPECT_EQ(overlaps[0].dials.overlap, true);
  EXPECT_EQ(overlaps[1].dials.overlap, false);
}

TEST(Sweeps, of_nothing_are_refused) {
  const auto text = [](const char* dial, const Words& names) {
    return refusal([&] { swept(dial, modes_named(names)); });
  };
  EXPECT_NE(text("unit", {"ddp"}).find("turns nothing in ddp; use --stages apart,zero3"),
            std::string::npos);
  EXPECT_NE(text("bucket", {"ddp", "zero3"}).find("turns nothing in zero3"), std::string::npos);
  EXPECT_NE(text("bucket", {"apart", "threads"}).find("no stage to sweep"), std::string::npos);
  EXPECT_NE(text("prefetch", {"zero3"}).find("not built yet"), std::string::npos);
  EXPECT_NE(text("speed", {"zero3"}).find("expected bucket, unit or overlap"), std::string::npos);
  EXPECT_THROW(stages_for("speed"), UsageError);
}

}  // namespace
}  // namespace lockstep::bench
