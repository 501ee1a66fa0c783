#include "comm/segment.h"

#include <sys/mman.h>

#include <algorithm>
#include <fcntl.h>

#ifndef MADV_POPULATE_WRITE  // Linux 5.14; older headers lack them
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace lockstep::comm {
namespace {

constexpr std::int64_t kPieceBytes = 64 << 20;

// Where the kernel cannot populate, a read of each page does: shared memory maps it writable.
void touch(const std::byte* begin, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += page_bytes()) {
    static_cast<void>(*static_cast<const volatile std::byte*>(begin + at));
  }
}

bool advise(std::byte* begin, std::int64_t bytes, int advice) {
  return ::madvise(begin, static_cast<std::size_t>(bytes), advice) == 0;
}

// Takes pages without mapping them, and fails where touching them would end the process.
bool allocate(int descriptor, std::int64_t begin, std::int64_t bytes) {
  int result = 0;
  do {
    result = ::fallocate(descriptor, 0, begin, bytes);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

std::int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

std::shared_ptr<Segment> Segment::create(std::int64_t bytes) {
  FileDescriptor descriptor(::memfd_create("lockstep", MFD_CLOEXEC));
  if (!descriptor.valid()) {
    throw_errno("memfd_create for shared memory");
  }
  if (::ftruncate(descriptor.get(), bytes) != 0) {
    throw_errno("ftruncate of shared memory to " + std::to_string(bytes) + " bytes");
  }
  return adopt(std::move(descriptor), bytes);
}

std::shared_ptr<Segment> Segment::adopt(FileDescriptor descriptor, std::int64_t bytes) {
  void* data = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptor.get(), 0);
  if (data == MAP_FAILED) {
    throw_errno("mmap of " + std::to_string(bytes) + " bytes of shared memory");
  }
  return std::make_shared<Segment>(std::move(descriptor), static_cast<std::byte*>(data), bytes);
}

Segment::Segment(FileDescriptor descriptor, std::byte* data, std::int64_t bytes)
    : descriptor_(std::move(descriptor)), data_(data), bytes_(bytes) {}

Segment::~Segment() { ::munmap(data_, static_cast<std::size_t>(bytes_)); }

void Segment::reserve(std::int64_t begin, std::int64_t bytes) {
  advise(data_, bytes_, MADV_HUGEPAGE);  // may be refused: then pages are small
  for (std::int64_t at = begin; at < begin + bytes; at += kPieceBytes) {
    const std::int64_t piece = std::min(kPieceBytes, begin + bytes - at);
    if (advise(data_ + at, piece, MADV_POPULATE_WRITE) || allocate(descriptor_.get(), at, piece)) {
      continue;
    }
    throw_errno("taking " + std::to_string(bytes) + " bytes of shared memory, after " +
                std::to_string(at - begin));
  }
}

void Segment::populate() {
  // Reading suffices, as touch() says, and goes around several pages at a time.
  if (!advise(data_, bytes_, MADV_POPULATE_READ)) {
    touch(data_, bytes_);
  }
}

}  // namespace lockstep::comm
