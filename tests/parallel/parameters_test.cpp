#include "parallel/parameters.h"

#include "parallel/modules.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::parallel {
namespace {

using test::Parameters;
using test::Shapes;

TEST(Parameters, TiedOnesComeOnceInRegistrationOrderAndFrozenOnesNot) {
  Parameters model(Shapes{{"first", {2}}, {"frozen", {2}}, {"second", {3}}});
  model["frozen"].set_requires_grad(false);
  model->register_parameter("alias", model["first"]);
  const auto found = trainable_parameters(*model, Precision::f32());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "first");
  EXPECT_EQ(found[1].name, "second");
}

TEST(Parameters, PrecisionNarrowsAllButWhatIsKept) {
  Parameters model(Shapes{{"matrix", {2, 2}}, {"norm", {2}}});
  const auto found = trainable_parameters(
      *model, Precision::bf16_mixed([](const std::string& name) { return name == "norm"; }));
  EXPECT_EQ(found[0].held_as, torch::kBFloat16);
  EXPECT_EQ(found[1].held_as, torch::kFloat32);
}

TEST(Parameters, FrozenOnesAreConvertedInPlace) {
  Parameters model(Shapes{{"a", {2}}, {"b", {2}}}, 3.0);
  model["b"].set_requires_grad(false);
  convert_frozen(*model, Precision::bf16_mixed());
  EXPECT_EQ(model["a"].scalar_type(), torch::kFloat32);
  EXPECT_EQ(model["b"].scalar_type(), torch::kBFloat16);
  EXPECT_EQ(model["b"][1].item<float>(), 3.0f);
}

std::vector<std::string> errors_of(const std::vector<std::vector<std::string>>& lists) {
  std::vector<Group> groups = Group::of_threads(static_cast<int>(lists.size()));
  std::vector<std::string> errors(lists.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        verify_equal_lists(groups[rank], lists[rank], "parameters");
      } catch (const Mismatch& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

TEST(Parameters, EqualListsPass) {
  EXPECT_EQ(errors_of({{"a [2]", "b"}, {"a [2]", "b"}, {"a [2]", "b"}}),
            (std::vector<std::string>(3)));
  EXPECT_EQ(errors_of({{}, {}}), (std::vector<std::string>(2)));
}

TEST(Parameters, G8_first_difference_is_named_on_every_rank) {
  for (const std::string& error :
       errors_of({{"a [2]", "b [3]"}, {"a [2]", "b [3]"}, {"a [2]", "b [4]", "c"}})) {
    EXPECT_NE(error.find("rank 0 has 2, rank 2 has 3"), std::string::npos) << error;
    EXPECT_NE(error.find("number 2: 'b [3]' on rank 0, 'b [4]' on rank 2"), std::string::npos)
        << error;
  }
  for (const std::string& error : errors_of({{}, {"only"}})) {
    EXPECT_NE(error.find("nothing on rank 0, 'only' on rank 1"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace lockstep::parallel
