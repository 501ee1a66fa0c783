// Memory that several ranks map: a memfd, so that /dev/shm's size does not matter and nothing is
// left behind when its processes die.
#pragma once

#include "comm/file_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::comm {

class Segment {
 public:
  // A new, zeroed, sparse one of `bytes` (> 0). Throws SystemError.
  static std::shared_ptr<Segment> create(std::int64_t bytes);
  // The one behind a descriptor that another process created with the same size.
  static std::shared_ptr<Segment> adopt(FileDescriptor descriptor, std::int64_t bytes);

  Segment(FileDescriptor descriptor, std::byte* data, std::int64_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  // The only descriptor of this segment in this process: closing any would drop its file locks.
  int descriptor() const { return descriptor_.get(); }

  // Takes memory for bytes [begin, begin + bytes) now, on the calling thread's NUMA node, in
  // pieces. Throws SystemError with what was asked for.
  void reserve(std::int64_t begin, std::int64_t bytes);
  // Fills this process's page tables for the whole segment, once all of it is reserved, so that
  // first use does not fault.
  void populate();

 private:
  FileDescriptor descriptor_;
  std::byte* data_;
  std::int64_t bytes_;
};

// Bytes of a page of memory.
std::int64_t page_bytes();

}  // namespace lockstep::comm
