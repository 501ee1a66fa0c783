#include "checkpoint/saved_step.h"

#include "base/invariant.h"
#include "lockstep/error.h"

#include <system_error>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWayOut = "; remove the folder to use an older step";

std::string range_text(Range elements) {
  return "[" + std::to_string(elements.begin) + ":" + std::to_string(elements.end) + "]";
}

const StateArray* find(std::span<const StateArray> arrays, const StateArray& wanted) {
  for (const StateArray& array : arrays) {
    if (array.slot == wanted.slot && array.name == wanted.name) {
      return &array;
    }
  }
  return nullptr;
}

}  // namespace

SavedStep::SavedStep(std::string path) : path_(std::move(path)), manifest_(read_manifest(path_)) {
  check_files();
}

void SavedStep::check_files() const {
  std::set<std::string> expected{std::string(kManifestName)};
  for (const FileEntry& file : manifest_.files) {
    std::error_code error;
    const auto bytes = fs::file_size(path_ + "/" + file.name, error);
    if (error) {
      throw Error(path_ + "/" + file.name + ": is missing (" + error.message() + "), expected " +
                  std::to_string(file.bytes) + " bytes" + kWayOut);
    }
    if (static_cast<std::int64_t>(bytes) != file.bytes) {
      throw Error(path_ + "/" + file.name + ": expected " + std::to_string(file.bytes) +
                  " bytes, got " + std::to_string(bytes) + kWayOut);
    }
    expected.insert(file.name);
  }
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (!expected.contains(name)) {
      throw Error(path_ + "/" + name + ": is not in the manifest; remove it, or the whole folder");
    }
  }
}

void SavedStep::verify(int part, int parts) const {
  for (auto i = static_cast<std::size_t>(part); i < manifest_.files.size();
       i += static_cast<std::size_t>(parts)) {
    const FileEntry& file = manifest_.files[i];
    const MappedFile mapped(path_ + "/" + file.name);
    const std::string got = hash_of(mapped.bytes());
    if (got != file.hash) {
      throw Error(path_ + "/" + file.name + ": damaged: expected xxh3_128 " + file.hash + ", got " +
                  got + kWayOut);
    }
  }
}

void SavedStep::check_holds(std::span<const StateArray> arrays) const {
  for (const StateArray& array : arrays) {
    const StateArray* const saved = find(manifest_.arrays, array);
    if (saved == nullptr) {
      throw UsageError(path_ + ": expected " + array.title() + " (" + array.form() +
                       "), found none; build the model that was saved");
    }
    if (saved->form() != array.form()) {
      throw UsageError(path_ + ": " + array.title() + ": expected " + array.form() + ", found " +
                       saved->form() + "; build the model that was saved");
    }
  }
  for (const StateArray& saved : manifest_.arrays) {
    if (find(arrays, saved) == nullptr) {
      throw UsageError(path_ + ": holds " + saved.title() + " (" + saved.form() +
                       "), which the model has not; build the model that was saved");
    }
  }
}

SavedArrays::SavedArrays(const SavedStep& step) : step_(step) {
  for (const FileEntry& file : step.manifest().files) {
    files_.emplace_back(step.path() + "/" + file.name);
  }
  for (const SafetensorsFile& file : files_) {
    add(file);
  }
  for (auto& [key, held] : held_) {
    std::ranges::sort(held, {}, [](const Held& one) { return one.elements.begin; });
  }
  for (const StateArray& array : step.manifest().arrays) {
    check_complete(array);
  }
}

void SavedArrays::add(const SafetensorsFile& file) {
  for (const auto& [text, tensor] : file.tensors()) {
    const Piece piece = piece_of(file.path(), text);
    const StateArray* const array =
        find(step_.manifest().arrays, {.slot = piece.slot, .name = piece.name});
    if (array == nullptr || array->dtype != tensor.dtype ||
        tensor.count() != piece.elements.size()) {
      throw Error(file.path() + ": tensor '" + text + "' (" + std::string(name_of(tensor.dtype)) +
                  ", " + std::to_string(tensor.count()) +
                  " elements) fits no array of the manifest" + kWayOut);
    }
    held_[{piece.slot, piece.name}].push_back(
        {piece.elements, static_cast<const std::uint8_t*>(tensor.data)});
  }
}

void SavedArrays::check_complete(const StateArray& array) const {
  const auto found = held_.find({array.slot, array.name});
  std::int64_t end = 0;
  if (found != held_.end()) {
    for (const Held& one : found->second) {
      if (one.elements.begin != end) {
        throw Error(step_.path() + ": " + array.title() + ": expected the elements from " +
                    std::to_string(end) + " on, found " + range_text(one.elements) + kWayOut);
      }
      end = one.elements.end;
    }
  }
  if (end != array.count()) {
    throw Error(step_.path() + ": " + array.title() + ": expected " +
                std::to_string(array.count()) + " elements, found " + std::to_string(end) +
                kWayOut);
  }
}

void SavedArrays::read(const StateArray& array, Range elements, void* destination) const {
  LOCKSTEP_INVARIANT(elements.end, <=, array.count());
  const auto found = held_.find({array.slot, array.name});
  if (found == held_.end()) {
    return;  // an array without elements
  }
  const std::int64_t width = size_of(array.dtype);
  auto* to = static_cast<std::uint8_t*>(destination);
  for (const Held& one : found->second) {
    const Range part = intersect(elements, one.elements);
    if (!part.empty()) {
      std::memcpy(to + (part.begin - elements.begin) * width,
                  one.data + (part.begin - one.elements.begin) * width,
                  static_cast<std::size_t>(part.size() * width));
    }
  }
}

std::vector<std::uint8_t> SavedArrays::bytes_of(const StateArray& array) const {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(array.count() * size_of(array.dtype)));
  read(array, {0, array.count()}, bytes.data());
  return bytes;
}

}  // namespace lockstep::checkpoint
