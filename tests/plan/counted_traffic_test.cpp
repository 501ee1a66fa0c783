// The plan's traffic against what groups count when they really move it.
#include "base/flat_layout.h"
#include "comm/networks.h"
#include "comm/worlds.h"
#include "lockstep/plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::plan {
namespace {

void expect_equal(const Traffic& counted, const Traffic& planned) {
  EXPECT_EQ(counted.sent, planned.sent);
  EXPECT_EQ(counted.received, planned.received);
  EXPECT_EQ(counted.collectives, planned.collectives);
}

TEST(CountedTraffic, of_gradients_in_symmetric_memory) {
  const std::vector<Parameter> model{{1000}, {65}, {3}};
  for (const int ranks : {1, 2, 3, 4, 7}) {
    test::on_ranks(ranks, [&](Group& group) {
      const FlatLayout layout(std::vector<std::int64_t>{3, 65, 1000}, ranks);
      const auto memory = group.allocate_symmetric(layout.size() * 4, "gradients");
      const Traffic before = group.traffic();
      group.all_reduce(memory.span(0, layout.size(), Dtype::f32)).wait();
      Traffic counted = group.traffic();
      counted.sent -= before.sent;
      counted.received -= before.received;
      counted.collectives -= before.collectives;
      expect_equal(counted, step_traffic(model, {.ranks = ranks}, group.rank()));
    });
  }
}

TEST(CountedTraffic, of_decisions_and_losses_of_any_size) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::int64_t elements : {1, 217, 1024, 1025, 131072, 200000}) {
      test::on_ranks(ranks, [&](Group& group) {
        std::vector<std::int64_t> decision(static_cast<std::size_t>(elements), 1);
        std::vector<double> losses(4, 1.0);
        std::vector<double> all(losses.size() * static_cast<std::size_t>(ranks));
        group.all_reduce(std::span(decision)).wait();
        group.all_gather(std::span(losses), std::span(all)).wait();
        expect_equal(group.traffic(), step_traffic({}, {.ranks = ranks}, group.rank(),
                                                   {.decision_elements = elements, .losses = 4}));
      });
    }
  }
}

TEST(CountedTraffic, over_a_network_of_what_each_stage_exchanges) {
  const std::vector<Parameter> model{{1000}, {65}, {3}};
  for (const int ranks : {2, 3, 4, 7}) {
    test::on_network(ranks, [&](Group& group) {
      const FlatLayout layout(std::vector<std::int64_t>{3, 65, 1000}, ranks);
      const auto memory = group.allocate_symmetric(layout.size() * 4, "gradients");
      const SymmetricSpan whole = memory.span(0, layout.size(), Dtype::f32);
      const Range own = layout.shard(group.rank());
      Traffic before = group.traffic();
      const auto expect_next = [&](Stage stage) {
        Traffic counted = group.traffic();
        counted.sent -= before.sent;
        counted.received -= before.received;
        counted.collectives -= before.collectives;
        before = group.traffic();
        expect_equal(counted,
                     step_traffic(model, {.stage = stage, .ranks = ranks, .over_network = true},
                                  group.rank()));
      };
      group.all_reduce(whole).wait();
      expect_next(Stage::ddp);
      group.reduce_scatter(whole, whole.subspan(own.begin, own.end).local()).wait();
      group.all_gather(whole).wait();
      expect_next(Stage::zero1);
    });
  }
}

TEST(CountedTraffic, over_a_network_of_decisions_and_losses) {
  for (const int ranks : {2, 3, 4, 7}) {
    for (const std::int64_t elements : {1, 217, 1025, 200000}) {
      test::on_network(ranks, [&](Group& group) {
        std::vector<std::int64_t> decision(static_cast<std::size_t>(elements), 1);
        std::vector<double> losses(4, 1.0);
        std::vector<double> all(losses.size() * static_cast<std::size_t>(ranks));
        group.all_reduce(std::span(decision)).wait();
        group.all_gather(std::span(losses), std::span(all)).wait();
        expect_equal(group.traffic(),
                     step_traffic({}, {.ranks = ranks, .over_network = true}, group.rank(),
                                  {.decision_elements = elements, .losses = 4}));
      });
    }
  }
}

}  // namespace
}  // namespace lockstep::plan
