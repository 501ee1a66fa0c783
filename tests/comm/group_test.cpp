#include "lockstep/group.h"

#include "comm/worlds.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Group, first) {
  for (int ranks : {1, 2, 3, 4, 7}) {
    testing::on_ranks(ranks, [&](Group& group) {
      auto memory = group.allocate_symmetric(4000, "values");
      auto span = memory.span(0, 1000, Dtype::f32);
      auto* data = static_cast<float*>(span.data());
      for (int i = 0; i < 1000; ++i) data[i] = static_cast<float>(i * (group.rank() + 1));
      group.all_reduce(span, {.name = "x"}).wait();
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(data[i], i * ranks * (ranks + 1) / 2);
      std::vector<float> plain(300000, float(group.rank()));
      group.all_reduce(std::span(plain), {.name = "y"}).wait();
      for (float v : plain) ASSERT_EQ(v, ranks * (ranks - 1) / 2);
      group.barrier();
      auto sub = group.split(group.rank() % 2, -group.rank());
      sub->barrier();
      std::vector<int> v(1, group.rank());
      sub->broadcast(std::span(v), 0).wait();
      group.barrier();
    });
  }
}

}  // namespace
}  // namespace lockstep
