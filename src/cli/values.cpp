#include "cli/values.h"

#include "base/quantity.h"
#include "lockstep/error.h"

#include <cmath>

namespace lockstep::cli {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& expected,
                         const std::string& text) {
  throw UsageError(name + ": expected " + expected + ", got '" + text + "'");
}

}  // namespace

std::optional<std::int64_t> whole_value(const CommandLine& line, const std::string& name,
                                        WholeBounds bounds) {
  const auto text = line.value_of(name);
  const auto value = text ? quantity::whole(*text) : std::nullopt;
  if (text && (!value || *value < bounds.low || *value > bounds.high)) {
    refuse(
        name,
        "a whole number from " + std::to_string(bounds.low) + " to " + std::to_string(bounds.high),
        *text);
  }
  return value;
}

std::optional<double> decimal_value(const CommandLine& line, const std::string& name) {
  const auto text = line.value_of(name);
  const auto value = text ? quantity::decimal(*text) : std::nullopt;
  if (text && (!value || *value < 0)) {
    refuse(name, "a number of at least 0", *text);
  }
  return value;
}

std::optional<std::int64_t> bytes_value(const CommandLine& line, const std::string& name,
                                        std::int64_t most) {
  const auto text = line.value_of(name);
  const auto value = text ? quantity::bytes(*text) : std::nullopt;
  if (text && (!value || *value < 0 || *value > most)) {
    refuse(name, "bytes from 0 to " + std::to_string(most) + ", as in 400 or 1KB", *text);
  }
  return value;
}

std::optional<std::int64_t> seconds_value(const CommandLine& line, const std::string& name) {
  const auto text = line.value_of(name);
  const auto value = text ? quantity::seconds(*text) : std::nullopt;
  if (text && (!value || *value < 1 || *value > 1e9 || *value != std::floor(*value))) {
    refuse(name, "whole seconds of at least 1, as in 300 or 5m", *text);
  }
  return value ? std::optional(static_cast<std::int64_t>(*value)) : std::nullopt;
}

}  // namespace lockstep::cli
