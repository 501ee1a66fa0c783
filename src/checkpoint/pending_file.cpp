#include "checkpoint/pending_file.h"

#include "base/invariant.h"
#include "lockstep/error.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace lockstep::checkpoint {
namespace {

std::string temporary_name(const std::string& path) {
  // Two ranks, or two files of one rank, may be on their way to the same place.
  static std::atomic<unsigned> number{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
}

// A rename is durable only once its folder is.
void flush_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const int descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);  // some file systems refuse this on folders; the file itself is safe
    ::close(descriptor);
  }
}

}  // namespace

PendingFile::PendingFile(std::string path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail("creating it");
  }
}

PendingFile::~PendingFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void PendingFile::fail(std::string_view doing) const {
  const int error = errno;
  throw SystemError(path_ + ": " + std::string(doing) + " failed after " +
                    std::to_string(written_) + " bytes: " + std::strerror(error));
}

void PendingFile::write(const void* data, std::int64_t bytes) {
  LOCKSTEP_INVARIANT(descriptor_, >=, 0);
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(descriptor_, from, static_cast<std::size_t>(bytes));
    if (done < 0 && errno == EINTR) {
      continue;
    }
    if (done <= 0) {
      fail("writing");
    }
    from += done;
    bytes -= done;
    written_ += done;
  }
}

void PendingFile::publish() {
  LOCKSTEP_INVARIANT(descriptor_, >=, 0);
  if (::fsync(descriptor_) != 0) {
    fail("flushing it to the disk");
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("renaming it into place");
  }
  ::close(std::exchange(descriptor_, -1));
  flush_folder_of(path_);
}

void write_text(const std::string& path, std::string_view text) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) {
    PendingFile file(path);
    file.write(text);
    file.publish();
    return;
  }
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const ssize_t done = descriptor < 0 ? -1 : ::write(descriptor, text.data(), text.size());
  const int error = errno;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  if (done != static_cast<ssize_t>(text.size())) {
    throw SystemError(path + ": writing failed: " + std::strerror(error));
  }
}

}  // namespace lockstep::checkpoint
