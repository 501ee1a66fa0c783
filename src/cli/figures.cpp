#include "cli/figures.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace lockstep::cli {
namespace {

std::string printed(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

}  // namespace

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string in_gb(std::int64_t bytes) { return printed("%.2f", static_cast<double>(bytes) / 1e9); }

std::string in_gib(std::int64_t bytes) {
  return printed("%.2f", static_cast<double>(bytes) / 0x1p30);
}

std::string duration(double milliseconds) {
  if (milliseconds < 1) {
    return printed("%.3g us", milliseconds * 1e3);
  }
  return milliseconds < 10'000 ? printed("%.4g ms", milliseconds)
                               : printed("%.4g s", milliseconds / 1e3);
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string left(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace lockstep::cli
