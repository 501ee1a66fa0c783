// The stages of data parallelism, by the names that the command line and reports use.
#pragma once

#include <cstdint>
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

}  // namespace lockstep
