// Ranks' output on its way to the user: whole lines, prefixed, never blocking the launcher.
#pragma once

#include "launch/file_descriptor.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep::launch {

// Where lines go: the launcher's own standard output or standard error. Writing never blocks; what
// the reader has not taken yet waits here. When the reader is gone, what is appended is dropped.
class OutputSink {
 public:
  explicit OutputSink(int fd);

  void append(std::string_view text);
  // Writes what the reader takes now.
  void flush();
  bool pending() const { return !waiting_.empty(); }
  // Whether sources should go on; false while a slow reader has much to catch up with.
  bool has_room() const;
  bool broken() const { return broken_; }
  // errno of the write that broke it; 0: none did.
  int failure() const { return failure_; }
  // For poll(): becomes writable when flush() can go on.
  int fd() const { return reopened_ ? reopened_.get() : fd_; }
  // Gives up on the reader.
  void abandon();

 private:
  int fd_;
  FileDescriptor reopened_;
  bool is_socket_ = false;
  bool broken_ = false;
  int failure_ = 0;
  std::string waiting_;
};

// Reads one rank's stream and appends it to a sink line by line, each line behind `prefix`. Lines
// end at \n, \r or \r\n (kept as they are, so that progress bars work); a line longer than 1 MiB is
// cut; the last one, when it lacks its end, gets \n.
class LineRelay {
 public:
  // `source` is non-blocking; `sink` outlives the relay.
  LineRelay(FileDescriptor source, OutputSink& sink, std::string prefix);

  // For poll(); -1 after the end.
  int fd() const { return source_.get(); }
  bool open() const { return static_cast<bool>(source_); }
  bool wants_input() const { return open() && sink_->has_room(); }
  // Reads once; at the stream's end flushes the last line and closes. A broken sink closes too, so
  // that the rank gets SIGPIPE, as it would without a launcher.
  void read_once();
  void close();
  // The last line that was not blank, without its end.
  const std::string& last_line() const { return last_line_; }

 private:
  void take(std::string_view text);
  void emit_complete_lines();
  void emit(std::string_view line);

  FileDescriptor source_;
  OutputSink* sink_;
  std::string prefix_;
  std::string partial_;
  std::string last_line_;
};

}  // namespace lockstep::launch
