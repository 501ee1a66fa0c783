// What saving does to the disk, one call per effect. An interface, so that a test can fail or die
// between any two of them.
#pragma once

#include "checkpoint/bytes.h"

#include <span>
#include <string>

namespace lockstep::checkpoint {

// Everything throws SystemError: the path, what was done, errno's words.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Makes a folder that is not there yet; its parent is.
  virtual void make_folder(const std::string& path) = 0;
  // Creates a file that is not there yet, holding the pieces end to end, durable once it returns.
  virtual void write_file(const std::string& path, std::span<const ByteSpan> pieces) = 0;
  // Makes the names in a folder durable.
  virtual void flush_folder(const std::string& path) = 0;
  // Gives a folder a name that nothing has.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  // Swaps the names of two folders at once. Refused by file systems that can't.
  virtual void exchange(const std::string& one, const std::string& other) = 0;
  // Removes a folder and what is in it, piece by piece.
  virtual void remove_folder(const std::string& path) = 0;
};

class Disk : public FileSystem {
 public:
  void make_folder(const std::string& path) override;
  void write_file(const std::string& path, std::span<const ByteSpan> pieces) override;
  void flush_folder(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void exchange(const std::string& one, const std::string& other) override;
  void remove_folder(const std::string& path) override;
};

}  // namespace lockstep::checkpoint
