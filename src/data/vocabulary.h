// What GPT-2's files and a tokenizer.json have in common.
#pragma once

#include "data/token_span.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::data {

// Throws UsageError naming `path` and where in it the text stops being JSON.
nlohmann::json parse_json(const std::string& path, std::span<const std::uint8_t> text);

// {"token": id, …}. `where` is what the UsageError names when it is something else.
std::map<std::string, TokenId> vocabulary_of(const nlohmann::json& json, const std::string& where);

// An id below 2²⁴, which keeps a broken file from claiming all memory. Throws UsageError.
TokenId id_of(const nlohmann::json& json, const std::string& where);

// The two sides of "left right".
std::optional<std::pair<std::string, std::string>> merge_of(std::string_view line);

}  // namespace lockstep::data
