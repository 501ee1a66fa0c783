// The stages of data parallelism, by the names that the command line and reports use.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class Stage : std::uint8_t { single, coordinator, async, ddp, zero1, zero2, zero3, hybrid };

constexpr std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::single:
      return "single";
    case Stage::coordinator:
      return "coordinator";
    case Stage::async:
      return "async";
    case Stage::ddp:
      return "ddp";
    case Stage::zero1:
      return "zero1";
    case Stage::zero2:
      return "zero2";
    case Stage::zero3:
      return "zero3";
    case Stage::hybrid:
      return "hybrid";
  }
  return "?";
}

inline constexpr std::array kStages{Stage::single, Stage::coordinator, Stage::async, Stage::ddp,
                                    Stage::zero1,  Stage::zero2,       Stage::zero3, Stage::hybrid};

// Can it be trained with and planned for yet?
constexpr bool is_built(Stage stage) {
  return stage != Stage::coordinator && stage != Stage::async && stage != Stage::hybrid;
}

// Is the mean gradient complete in each rank's shard only?
constexpr bool is_sharded(Stage stage) {
  return stage == Stage::zero1 || stage == Stage::zero2 || stage == Stage::zero3 ||
         stage == Stage::hybrid;
}

// Do the ranks of a host read one copy of the parameters in place? zero3's do, the others' where
// `share_parameters` asks for it.
constexpr bool shares_parameters(Stage stage, bool share_parameters) {
  return stage == Stage::zero3 || share_parameters;
}

// Does each rank keep, and update, only its shard of full precision and optimizer state? Of one
// copy nobody may write more.
constexpr bool updates_shards(Stage stage, bool share_parameters) {
  return is_sharded(stage) || share_parameters;
}

// Do gradients rest in shards, so that micro-batches can add up there?
constexpr bool shards_gradients(Stage stage) { return is_sharded(stage) && stage != Stage::zero1; }

// The stage of that name, or nothing.
constexpr std::optional<Stage> stage_named(std::string_view name) {
  for (const Stage stage : kStages) {
    if (name_of(stage) == name) {
      return stage;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
