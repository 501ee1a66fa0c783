#include "base/quantity.h"

#include <system_error>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace lockstep::quantity {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end) {
    return std::nullopt;
  }
  return value;
}

// The number in front times the factor of the unit behind it; the empty unit comes last.
template <std::size_t N>
std::optional<double> with_unit(std::string_view text, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (text.ends_with(unit.name)) {
      const auto number = decimal(text.substr(0, text.size() - unit.name.size()));
      return number ? std::optional(*number * unit.factor) : std::nullopt;
    }
  }
  return std::nullopt;
}

// A double that is a whole number and exact.
std::optional<std::int64_t> exact(std::optional<double> value) {
  if (!value || *value != std::floor(*value) || std::abs(*value) > 0x1p53) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*value);
}

}  // namespace

std::optional<std::int64_t> whole(std::string_view text) { return parse_all<std::int64_t>(text); }

std::optional<double> decimal(std::string_view text) {
  const auto value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> seconds(std::string_view text) {
  constexpr std::array<Unit, 5> kUnits{{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"", 1}}};
  return with_unit(text, kUnits);
}

std::optional<std::int64_t> bytes(std::string_view text) {
  constexpr std::array<Unit, 10> kUnits{{{"KiB", 0x1p10},
                                         {"MiB", 0x1p20},
                                         {"GiB", 0x1p30},
                                         {"TiB", 0x1p40},
                                         {"KB", 1e3},
                                         {"MB", 1e6},
                                         {"GB", 1e9},
                                         {"TB", 1e12},
                                         {"B", 1},
                                         {"", 1}}};
  return exact(with_unit(text, kUnits));
}

std::optional<std::int64_t> count(std::string_view text) {
  constexpr std::array<Unit, 5> kUnits{{{"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}, {"", 1}}};
  const auto value = exact(with_unit(text, kUnits));
  return value && *value >= 0 ? value : std::nullopt;
}

std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  std::array<char, 32> text;
  if (bytes >= 1'000'000'000) {
    std::snprintf(text.data(), text.size(), "%.2f GB", value / 1e9);
  } else if (bytes >= 1'000'000) {
    std::snprintf(text.data(), text.size(), "%.2f MB", value / 1e6);
  } else if (bytes >= 1'000) {
    std::snprintf(text.data(), text.size(), "%.1f KB", value / 1e3);
  } else {
    std::snprintf(text.data(), text.size(), "%.0f B", value);
  }
  return text.data();
}

std::string text_of(double value) {
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

}  // namespace lockstep::quantity
