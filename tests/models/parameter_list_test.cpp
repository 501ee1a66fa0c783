#include "models/parameter_list.h"

#include "models/catalogue.h"
#include "models/registry.h"
#include "parallel/units.h"

#include <gtest/gtest.h>

namespace lockstep::models {
namespace {

void expect_what_the_model_registers(const ModelConfig& config) {
  const auto model = make_model(config);
  const auto registered = model->named_parameters();
  const std::vector<std::size_t> units = parallel::units_of(*model, registered.values());
  const std::vector<ListedParameter> listed = parameters_of(config);
  ASSERT_EQ(listed.size(), registered.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].name, registered[i].key());
    EXPECT_EQ(listed[i].elements, registered[i].value().numel()) << listed[i].name;
    EXPECT_EQ(listed[i].unit, units[i]) << listed[i].name;
  }
}

TEST(ParameterList, OfAGpt2IsWhatItRegisters) {
  expect_what_the_model_registers(Gpt2Config{
      .layers = 3, .width = 20, .heads = 2, .context = 7, .vocabulary = 11, .dropout = 0});
}

TEST(ParameterList, OfALlamaIsWhatItRegisters) {
  for (const bool tied : {true, false}) {
    expect_what_the_model_registers(LlamaConfig{.layers = 2,
                                                .width = 20,
                                                .heads = 4,
                                                .key_heads = 2,
                                                .head_size = 6,
                                                .hidden = 17,
                                                .context = 9,
                                                .vocabulary = 13,
                                                .tied = tied});
  }
}

TEST(ParameterList, AddsUpToTheFormula) {
  for (const std::string& name : names()) {
    const ModelConfig config = config_of(name, 256);
    std::int64_t elements = 0;
    for (const ListedParameter& parameter : parameters_of(config)) {
      elements += parameter.elements;
    }
    EXPECT_EQ(elements, facts_of(config).parameters) << name;
  }
}

}  // namespace
}  // namespace lockstep::models
