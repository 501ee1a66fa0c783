// A file read through memory: mapped read-only, unmapped with the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lockstep::checkpoint {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws SystemError naming the file when it can't be opened or mapped. An empty file is legal.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Valid as long as this object.
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace lockstep::checkpoint
