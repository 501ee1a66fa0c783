// One segment holding an equal part per rank of a group; what SymmetricMemory stands for.
#pragma once

#include "comm/segment.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::comm {

class Communicator;

class SharedMemory {
 public:
  struct Description {
    std::uint64_t group = 0;  // Control::group_id() of the group that allocated it
    std::uint64_t id = 0;     // number of the allocation in that group, from 1
    int rank = 0;
    std::int64_t bytes = 0;  // per rank, as asked for
    std::string name;
    std::weak_ptr<Communicator> communicator = {};  // of this rank in that group
  };

  // Bytes from one rank's part to the next: whole pages, so that each rank first-touches its own.
  static std::int64_t stride(std::int64_t bytes);

  SharedMemory(Description description, std::shared_ptr<Segment> segment);

  // Rank r's part, readable and writable here.
  std::byte* part(int rank) const { return segment_->data() + rank * stride_; }
  std::byte* own() const { return part(description_.rank); }
  std::int64_t bytes() const { return description_.bytes; }
  std::uint64_t group() const { return description_.group; }
  std::uint64_t id() const { return description_.id; }
  const std::string& name() const { return description_.name; }
  // Throws GroupPoisoned when the handle of the group is gone.
  std::shared_ptr<Communicator> communicator() const;

 private:
  Description description_;
  std::shared_ptr<Segment> segment_;
  std::int64_t stride_;
};

}  // namespace lockstep::comm
