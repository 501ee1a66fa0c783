// One segment of which all ranks of a group see the same bytes; what HostMemory stands for.
#pragma once

#include "comm/segment.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::comm {

class HostCopy {
 public:
  // Bytes [first, second) of a segment of `bytes` that rank r first-touches: whole pages.
  static std::pair<std::int64_t, std::int64_t> touched_by(int rank, int ranks, std::int64_t bytes);

  // Maps the segment a second time, for reading only. Throws SystemError.
  HostCopy(std::shared_ptr<Segment> segment, std::int64_t bytes);
  ~HostCopy();
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;

  std::int64_t bytes() const { return bytes_; }
  // The two addresses of the same bytes.
  const std::byte* readable() const { return readable_; }
  std::byte* writable() const { return segment_->data(); }

 private:
  std::shared_ptr<Segment> segment_;
  std::int64_t bytes_;
  const std::byte* readable_;
};

}  // namespace lockstep::comm
