// An open file that closes with its owner.
#pragma once

#include "lockstep/error.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <unistd.h>
#include <utility>

namespace lockstep::comm {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  int get() const { return descriptor_; }
  bool valid() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// SystemError with errno's words: "what: No space left on device".
[[noreturn]] inline void throw_errno(const std::string& what, int error = errno) {
  throw SystemError(what + ": " + std::strerror(error));
}

}  // namespace lockstep::comm
