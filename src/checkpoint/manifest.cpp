#include "checkpoint/manifest.h"

#include "base/quantity.h"
#include "checkpoint/bytes.h"
#include "checkpoint/mapped_file.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "lockstep checkpoint";
constexpr int kVersion = 1;
constexpr const char* kHashKey = "xxh3_128";
constexpr std::array kDtypes{Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16,
                             Dtype::i32, Dtype::i64, Dtype::u8};

Json to_json(const StateArray& array) {
  return {{"slot", array.slot},
          {"name", array.name},
          {"dtype", name_of(array.dtype)},
          {"shape", array.shape}};
}

Json to_json(const FileEntry& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {kHashKey, file.hash}};
}

template <class T>
Json list_of(const std::vector<T>& entries) {
  Json list = Json::array();
  for (const T& entry : entries) {
    list.push_back(to_json(entry));
  }
  return list;
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(path + ": damaged: " + what + "; remove the folder to use an older step");
}

Dtype dtype_named(const std::string& path, const std::string& name) {
  const auto* const found = std::ranges::find(kDtypes, name, name_of);
  if (found == kDtypes.end()) {
    damaged(path, "unknown dtype '" + name + "'");
  }
  return *found;
}

StateArray array_of(const std::string& path, const Json& entry) {
  return {entry.at("slot"), entry.at("name"), dtype_named(path, entry.at("dtype")),
          entry.at("shape")};
}

Manifest manifest_of(const std::string& path, const Json& json) {
  Manifest manifest;
  manifest.step = json.at("step");
  manifest.optimizer = json.at("optimizer").at("kind");
  for (const auto& [name, steps] : json.at("optimizer").at("steps").items()) {
    manifest.optimizer_steps.emplace(name, steps);
  }
  for (const Json& entry : json.at("arrays")) {
    manifest.arrays.push_back(array_of(path, entry));
  }
  for (const Json& entry : json.at("files")) {
    manifest.files.push_back({entry.at("name"), entry.at("bytes"), entry.at(kHashKey)});
  }
  manifest.user = json.at("user").dump();
  return manifest;
}

void check_format(const std::string& path, const Json& json) {
  if (json.value("format", "") != kFormat) {
    damaged(path, "it is no manifest of a checkpoint");
  }
  const int version = json.value("version", 0);
  if (version != kVersion) {
    throw Error(path + ": has format version " + std::to_string(version) +
                ", this Lockstep reads version " + std::to_string(kVersion) +
                "; use the Lockstep that wrote it");
  }
}

}  // namespace

std::int64_t StateArray::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string StateArray::title() const {
  return slot == kParameterSlot || slot == kBufferSlot ? slot + " '" + name + "'"
                                                       : slot + " of '" + name + "'";
}

std::string StateArray::form() const {
  std::string text = std::string(name_of(dtype)) + " [";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::string text_of(const Piece& piece) {
  return piece.slot + "/" + piece.name + "[" + std::to_string(piece.elements.begin) + ":" +
         std::to_string(piece.elements.end) + "]";
}

Piece piece_of(const std::string& path, const std::string& text) {
  const std::size_t slash = text.find('/');
  const std::size_t open = text.rfind('[');
  const std::size_t colon = text.rfind(':');
  if (slash == std::string::npos || open == std::string::npos || colon == std::string::npos ||
      slash > open || open > colon || !text.ends_with(']')) {
    damaged(path, "a tensor called '" + text + "', expected SLOT/NAME[BEGIN:END]");
  }
  const auto begin = quantity::whole(text.substr(open + 1, colon - open - 1));
  const auto end = quantity::whole(text.substr(colon + 1, text.size() - colon - 2));
  if (!begin || !end || *begin < 0 || *end < *begin) {
    damaged(path, "a tensor called '" + text + "', whose range is none");
  }
  return {text.substr(0, slash), text.substr(slash + 1, open - slash - 1), {*begin, *end}};
}

std::string text_of(const Manifest& manifest) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["written_by"] = "lockstep " LOCKSTEP_VERSION;
  json["step"] = manifest.step;
  json["user"] = Json::parse(manifest.user);
  json["optimizer"] = {{"kind", manifest.optimizer}, {"steps", manifest.optimizer_steps}};
  json["arrays"] = list_of(manifest.arrays);
  json["files"] = list_of(manifest.files);
  const std::string text = json.dump(1);
  json[kHashKey] = hash_of(bytes_of(text));
  return json.dump(1) + "\n";
}

Manifest read_manifest(const std::string& step_folder) {
  const std::string path = step_folder + "/" + std::string(kManifestName);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(path + ": is missing; " + step_folder +
                " is no complete checkpoint, remove it to use an older step");
  }
  const MappedFile file(path);
  Json json = Json::parse(file.bytes().begin(), file.bytes().end(), nullptr,
                          /*allow_exceptions=*/false);
  if (!json.is_object()) {
    damaged(path, "it is not a JSON object");
  }
  try {
    check_format(path, json);
    const std::string expected = json.at(kHashKey);
    json.erase(kHashKey);
    const std::string got = hash_of(bytes_of(json.dump(1)));
    if (got != expected) {
      damaged(path, "its own hash is " + got + ", expected " + expected);
    }
    return manifest_of(path, json);
  } catch (const Json::exception& error) {
    damaged(path, error.what());
  }
}

void check_user_text(const std::string& text) {
  if (!Json::parse(text, nullptr, /*allow_exceptions=*/false).is_object()) {
    throw UsageError("checkpoint: the user's state is no JSON object: '" + text.substr(0, 60) +
                     "'; give one such as {\"epoch\": 3}");
  }
}

}  // namespace lockstep::checkpoint
