// Numbers as users write them on the command line and in config files. Pure; nullopt for anything
// that is not wholly such a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::quantity {

// "-3", "20": decimal digits with an optional minus.
std::optional<std::int64_t> whole(std::string_view text);

// "3e-4", ".1", "25": finite.
std::optional<double> decimal(std::string_view text);

// "300", "300s", "5m", "1h", "500ms": seconds.
std::optional<double> seconds(std::string_view text);

// "4096", "4KB" (1,000s), "4KiB" (1,024s), up to TB and TiB; "1.5MB" when that is a whole number of
// bytes.
std::optional<std::int64_t> bytes(std::string_view text);

// "8000000000", "8e9", "8B" (1e9s), "124M", "1.5T"; K, M, B, T: a whole number of things, at least
// 0 and below 2^53.
std::optional<std::int64_t> count(std::string_view text);

// "5 B", "999.9 KB", "3.44 MB", "1.99 GB": 1 MB is 1e6 bytes.
std::string bytes_text(std::int64_t bytes);

// The shortest text that decimal() reads back to the same value.
std::string text_of(double value);

}  // namespace lockstep::quantity
