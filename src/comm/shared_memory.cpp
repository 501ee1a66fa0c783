#include "comm/shared_memory.h"

#include "base/range.h"
#include "comm/communicator.h"
#include "lockstep/error.h"
#include "lockstep/group.h"

#include <algorithm>

namespace lockstep {
namespace comm {

std::int64_t SharedMemory::stride(std::int64_t bytes) {
  return round_up(std::max<std::int64_t>(bytes, 1), page_bytes());
}

SharedMemory::SharedMemory(Description description, std::shared_ptr<Segment> segment)
    : description_(std::move(description)),
      segment_(std::move(segment)),
      stride_(stride(description_.bytes)) {}

std::shared_ptr<Communicator> SharedMemory::communicator() const {
  std::shared_ptr<Communicator> communicator = description_.communicator.lock();
  if (communicator == nullptr) {
    throw GroupPoisoned("symmetric memory '" + name() + "': the handle of its group is gone");
  }
  return communicator;
}

}  // namespace comm

void* SymmetricSpan::data() const {
  return memory == nullptr ? nullptr : memory->own() + offset_bytes;
}

SymmetricSpan SymmetricSpan::subspan(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || end < begin || end > count) {
    throw UsageError("SymmetricSpan::subspan: [" + std::to_string(begin) + ", " +
                     std::to_string(end) + ") is outside its " + std::to_string(count) +
                     " elements");
  }
  return {memory, offset_bytes + begin * size_of(dtype), end - begin, dtype};
}

std::int64_t SymmetricMemory::bytes() const { return memory_ == nullptr ? 0 : memory_->bytes(); }

SymmetricSpan SymmetricMemory::span(std::int64_t offset_bytes, std::int64_t count,
                                    Dtype dtype) const {
  constexpr std::int64_t kAlignment = 64;
  const std::string asked = "SymmetricMemory::span: " + std::to_string(count) + " elements of " +
                            std::string(name_of(dtype)) + " at byte " +
                            std::to_string(offset_bytes);
  if (offset_bytes < 0 || offset_bytes % kAlignment != 0) {
    throw UsageError(asked + ": the offset must be a multiple of 64");
  }
  if (count < 0 || offset_bytes > bytes() || count > (bytes() - offset_bytes) / size_of(dtype)) {
    throw UsageError(asked + " do not fit into " + std::to_string(bytes()) + " bytes" +
                     (memory_ == nullptr ? "" : " of '" + memory_->name() + "'"));
  }
  return {memory_, offset_bytes, count, dtype};
}

}  // namespace lockstep
