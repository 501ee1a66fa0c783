#include "data/vocabulary.h"

#include "lockstep/error.h"

#include <nlohmann/json.hpp>

namespace lockstep::data {

using Json = nlohmann::json;

Json parse_json(const std::string& path, std::span<const std::uint8_t> text) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::parse_error& error) {
    throw UsageError("--tokenizer " + path + ": is no JSON from byte " +
                     std::to_string(error.byte) + " on; is the file complete?");
  }
}

TokenId id_of(const Json& json, const std::string& where) {
  constexpr std::uint64_t kMost = 1 << 24;
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() >= kMost) {
    throw UsageError("--tokenizer " + where + ": expected an id from 0 to " +
                     std::to_string(kMost - 1) + ", got " + json.dump());
  }
  return json.get<TokenId>();
}

std::map<std::string, TokenId> vocabulary_of(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    throw UsageError("--tokenizer " + where + ": expected tokens and their ids, got a JSON " +
                     json.type_name());
  }
  std::map<std::string, TokenId> vocabulary;
  for (const auto& [token, id] : json.items()) {
    vocabulary.emplace(token, id_of(id, where + ", token '" + token + "'"));
  }
  return vocabulary;
}

std::optional<std::pair<std::string, std::string>> merge_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    return std::nullopt;
  }
  return std::pair{std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

}  // namespace lockstep::data
