// manifest.json: what a checkpoint holds, and how each of its files must look.
#pragma once

#include "base/range.h"
#include "lockstep/dtype.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

inline constexpr std::string_view kManifestName = "manifest.json";
// Slots that every checkpoint may have; the others are the optimizer's.
inline constexpr std::string_view kParameterSlot = "parameter";
inline constexpr std::string_view kBufferSlot = "buffer";

// One array of the state, in full precision: a parameter, a buffer, or what the optimizer keeps of
// a parameter ("exp_avg").
struct StateArray {
  std::string slot;
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape = {};

  std::int64_t count() const;  // elements
  // "exp_avg of 'h.0.weight'", "f32 [2, 3]": for messages.
  std::string title() const;
  std::string form() const;
  friend bool operator==(const StateArray&, const StateArray&) = default;
};

// What tensors are called in the files: elements [begin, end) of an array, row-major, as
// "slot/name[begin:end]". So any writer may hold any part, and any reader find it.
struct Piece {
  std::string slot;
  std::string name;
  Range elements;
};
std::string text_of(const Piece& piece);
// Throws Error naming `path` for a text of another form.
Piece piece_of(const std::string& path, const std::string& text);

struct FileEntry {
  std::string name;
  std::int64_t bytes = 0;
  std::string hash;  // hash_of() its contents
};

struct Manifest {
  std::int64_t step = 0;
  std::string optimizer;                                // "adamw"
  std::map<std::string, std::int64_t> optimizer_steps;  // updates, by parameter
  std::vector<StateArray> arrays;
  std::vector<FileEntry> files;
  std::string user = "{}";  // a JSON object of whoever saved
};

// The same manifest gives the same text: there is no date in it. It carries its own hash.
std::string text_of(const Manifest& manifest);
// Reads the manifest of a step's folder. Throws Error, one line with file and fix, when it is
// missing, damaged, or of a format that this version does not know.
Manifest read_manifest(const std::string& step_folder);

// Throws UsageError unless `text` is a JSON object.
void check_user_text(const std::string& text);

}  // namespace lockstep::checkpoint
