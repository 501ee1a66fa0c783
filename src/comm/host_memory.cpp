#include "comm/host_memory.h"

#include "base/range.h"
#include "lockstep/group.h"

#include <sys/mman.h>

#include <algorithm>

namespace lockstep {
namespace comm {

std::pair<std::int64_t, std::int64_t> HostCopy::touched_by(int rank, int ranks,
                                                           std::int64_t bytes) {
  const std::int64_t pages = (bytes + page_bytes() - 1) / page_bytes();
  const Range mine = block_of(pages, ranks, rank);
  return {std::min(bytes, mine.begin * page_bytes()), std::min(bytes, mine.end * page_bytes())};
}

HostCopy::HostCopy(std::shared_ptr<Segment> segment, std::int64_t bytes)
    : segment_(std::move(segment)), bytes_(bytes) {
  void* const data = ::mmap(nullptr, static_cast<std::size_t>(segment_->bytes()), PROT_READ,
                            MAP_SHARED, segment_->descriptor(), 0);
  if (data == MAP_FAILED) {
    throw_errno("mmap of " + std::to_string(bytes) + " bytes of shared memory for reading");
  }
  readable_ = static_cast<const std::byte*>(data);
}

HostCopy::~HostCopy() {
  ::munmap(const_cast<std::byte*>(readable_), static_cast<std::size_t>(segment_->bytes()));
}

}  // namespace comm

std::int64_t HostMemory::bytes() const { return copy_ == nullptr ? 0 : copy_->bytes(); }
const std::byte* HostMemory::readable() const {
  return copy_ == nullptr ? nullptr : copy_->readable();
}
std::byte* HostMemory::writable() const { return copy_ == nullptr ? nullptr : copy_->writable(); }

}  // namespace lockstep
