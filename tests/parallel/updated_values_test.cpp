#include "parallel/updated_values.h"

#include "comm/worlds.h"
#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockstep::parallel {
namespace {

using test::values_of;

// Each rank writes its shard of three flat parameters; all read all of them.
TEST(UpdatedValues, ReachAllRanks) {
  const auto device = make_cpu_device();
  test::on_ranks(3, [&device](Group& group) {
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

// One copy on the host: nothing travels, and none returns before all have written.
TEST(UpdatedValues, InOneCopyAreReadWhereTheyWereWritten) {
  const auto device = make_cpu_device();
  test::on_ranks(3, [&device](Group& group) {
    const HostMemory memory = group.allocate_host(3 * 64 * 4, "parameters");
    FlatParameter part(*device, {{"p", torch::zeros({3 * 64}), torch::kFloat32}},
                       {.ranks = 3, .shard = group.rank(), .host_values = memory});
    part.attach_members(*device);
    Stopwatch exposed;
    UpdatedValues updated(*device, group, exposed);
    for (int step = 1; step <= 3; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10 * group.rank()));
      part.kept_full_precision(0).fill_(10 * step + group.rank());
      updated.start({&part}, 1);
      updated.finish();
      for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(values_of(part.member(0).tensor.narrow(0, 64 * rank, 64)),
                  std::vector<double>(64, 10 * step + rank));
      }
      group.barrier();
    }
    EXPECT_EQ(group.traffic().sent + group.traffic().received, 0);
  });
}

}  // namespace
}  // namespace lockstep::parallel
