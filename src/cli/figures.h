// Figures as people read them in a terminal. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::cli {

// "8,000,000,000".
std::string with_commas(std::int64_t value);

// Bytes / 1e9 with two decimals, bytes / 2^30 with two decimals; no unit behind.
std::string in_gb(std::int64_t bytes);
std::string in_gib(std::int64_t bytes);

// "1.23 ms", "45 us", "6.7 s".
std::string duration(double milliseconds);

// `text` with blanks before, or behind, it to `width`.
std::string right(const std::string& text, std::size_t width);
std::string left(const std::string& text, std::size_t width);

}  // namespace lockstep::cli
