// The kernel's files (/proc, /sys), or a tree of a test's own in their place.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::machine {

class FileTree {
 public:
  // Paths begin below `root`; an empty one is the real root.
  explicit FileTree(std::string root = "") : root_(std::move(root)) {}

  std::string path(const std::string& name) const { return root_ + name; }
  // The whole file without its last newline; nullopt when it can't be read.
  std::optional<std::string> text(const std::string& name) const;
  std::optional<std::string> first_line(const std::string& name) const;
  // What is in a folder, sorted; empty when it can't be read.
  std::vector<std::string> names(const std::string& folder) const;
  // The text behind "key:" (blanks and tabs stripped) of the first such line.
  std::optional<std::string> value_of(const std::string& name, const std::string& key) const;

 private:
  std::string root_;
};

}  // namespace lockstep::machine
