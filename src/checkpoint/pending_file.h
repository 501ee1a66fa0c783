// A file that appears complete or not at all: written under a temporary name beside its place,
// flushed to the disk, then renamed over it. Dropped without publish() it leaves nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::checkpoint {

class PendingFile {
 public:
  // Creates `<path>.tmp-<process>-<number>`, unique among the processes of the host. Throws
  // SystemError naming `path` when it can't.
  explicit PendingFile(std::string path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  // Removes the temporary file unless published.
  ~PendingFile();

  // Appends. Throws SystemError naming the file, bytes written and errno's words (a full disk, a
  // limit); nothing half-written stays once this object is gone.
  void write(const void* data, std::int64_t bytes);
  void write(std::string_view text) { write(text.data(), static_cast<std::int64_t>(text.size())); }

  // Makes the bytes durable and visible at `path`, replacing what was there. Once only.
  void publish();

 private:
  [[noreturn]] void fail(std::string_view doing) const;

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::int64_t written_ = 0;
};

// Writes a small text file in one go, as PendingFile does; a path that exists and is no regular
// file (/dev/stdout, a pipe) is written to directly. Throws SystemError.
void write_text(const std::string& path, std::string_view text);

}  // namespace lockstep::checkpoint
