#include "checkpoint/file_system.h"

#include "lockstep/error.h"

#include <sys/stat.h>
#include <system_error>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace lockstep::checkpoint {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& doing) {
  const int error = errno;
  throw SystemError(path + ": " + doing + " failed: " + std::strerror(error));
}

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) : path_(path) {
    descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      fail(path_, "opening it");
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(descriptor_); }

  void write(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) {
        continue;
      }
      if (done <= 0) {
        fail(path_, "writing after " + std::to_string(written_) + " bytes");
      }
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      written_ += done;
    }
  }
  int flush() { return ::fsync(descriptor_); }

 private:
  const std::string& path_;
  int descriptor_;
  std::int64_t written_ = 0;
};

}  // namespace

void Disk::make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    fail(path, "making the folder");
  }
}

void Disk::write_file(const std::string& path, std::span<const ByteSpan> pieces) {
  OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL);
  for (const ByteSpan piece : pieces) {
    file.write(piece);
  }
  if (file.flush() != 0) {
    fail(path, "flushing it to the disk");
  }
}

void Disk::flush_folder(const std::string& path) {
  // Some file systems refuse this on folders (EINVAL); the files in it are safe all the same.
  if (OpenFile(path, O_RDONLY | O_DIRECTORY).flush() != 0 && errno != EINVAL) {
    fail(path, "flushing the folder to the disk");
  }
}

void Disk::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail(from, "renaming it to " + to);
  }
}

void Disk::exchange(const std::string& one, const std::string& other) {
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0) {
    fail(other, "exchanging it for its new state (remove it first, then save again)");
  }
}

void Disk::remove_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) {
    throw SystemError(path + ": removing it failed: " + error.message());
  }
}

}  // namespace lockstep::checkpoint
