#include "parallel/updated_values.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::parallel {
namespace {

using test::values_of;

// Each rank writes its shard of three flat parameters; all read all of them.
TEST(UpdatedValues, ReachAllRanks) {
  const auto device = make_cpu_device();
  std::vector<Group> groups = Group::of_threads(3);
  std::vector<std::thread> ranks;
  for (Group& group : groups) {
    ranks.emplace_back([&device, &group] {
      constexpr std::int64_t kElements = 3 * 64;
      const SymmetricMemory memory = group.allocate_symmetric(3 * kElements * 4, "parameters");
      std::vector<std::unique_ptr<FlatParameter>> owned;
      std::vector<FlatParameter*> parts;
      for (std::int64_t i = 0; i < 3; ++i) {
        owned.push_back(std::make_unique<FlatParameter>(
            *device, std::vector<NamedParameter>{{"p", torch::zeros({kElements}), torch::kFloat32}},
            Spread{.ranks = 3,
                   .shard = group.rank(),
                   .values = memory.span(i * kElements * 4, kElements, Dtype::f32)}));
        owned.back()->attach_members(*device);
        parts.push_back(owned.back().get());
      }
      Stopwatch exposed;
      UpdatedValues updated(*device, group, exposed);
      for (int step = 1; step <= 2; ++step) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
          parts[i]->kept_full_precision(0).fill_(10 * step + group.rank());
          updated.start(parts, i);
        }
        updated.start(parts, parts.size());
        updated.finish();
        for (const FlatParameter* part : parts) {
          const torch::Tensor& tensor = part->member(0).tensor;
          for (int rank = 0; rank < 3; ++rank) {
            EXPECT_EQ(values_of(tensor.narrow(0, 64 * rank, 64)),
                      std::vector<double>(64, 10 * step + rank));
          }
        }
        group.barrier();
      }
      EXPECT_EQ(group.traffic().sent, 2 * 3 * 2 * 64 * 4);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
}

}  // namespace
}  // namespace lockstep::parallel
