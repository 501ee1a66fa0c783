// Reading one step: its manifest, the proof that its files are what was written, and any elements
// of any array from whichever files hold them.
#pragma once

#include "base/range.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::checkpoint {

class SavedStep {
 public:
  // Opens a step's folder: every file of its manifest is there with its size, and no other. Throws
  // Error, one line with the file, what was expected and what is there.
  explicit SavedStep(std::string path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  // Reads every `parts`-th file from the `part`-th on and compares hashes; ranks share the files
  // out this way. Throws Error naming the file and both hashes.
  void verify(int part = 0, int parts = 1) const;
  // Throws UsageError unless it holds exactly `arrays`, of the same dtype and shape: the first that
  // is missing, different or more, expected and found.
  void check_holds(std::span<const StateArray> arrays) const;

 private:
  void check_files() const;

  std::string path_;
  Manifest manifest_;
};

// The arrays of a verified step, read through memory.
class SavedArrays {
 public:
  // Throws Error unless the files hold each element of each array exactly once.
  explicit SavedArrays(const SavedStep& step);

  // Copies elements of an array of the manifest to `destination`.
  void read(const StateArray& array, Range elements, void* destination) const;
  // All of it, as bytes.
  std::vector<std::uint8_t> bytes_of(const StateArray& array) const;

 private:
  struct Held {
    Range elements;
    const std::uint8_t* data;
  };
  using Key = std::pair<std::string, std::string>;  // slot, name

  void add(const SafetensorsFile& file);
  void check_complete(const StateArray& array) const;

  const SavedStep& step_;
  std::vector<SafetensorsFile> files_;
  std::map<Key, std::vector<Held>> held_;  // by element
};

}  // namespace lockstep::checkpoint
