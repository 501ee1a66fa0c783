#include "launch/output.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 20;
constexpr std::size_t kEnoughWaiting = std::size_t{256} << 10;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

// O_NONBLOCK belongs to the open file, which the user's shell and the ranks share; opening the pipe
// or terminal again gives one of our own. A regular file never blocks, a socket has MSG_DONTWAIT.
OutputSink::OutputSink(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    return;
  }
  is_socket_ = S_ISSOCK(status.st_mode);
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    reopened_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  }
}

void OutputSink::append(std::string_view text) {
  if (!broken_) {
    waiting_ += text;
    flush();
  }
}

void OutputSink::flush() {
  while (!waiting_.empty()) {
    const ssize_t written =
        is_socket_ ? ::send(fd_, waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                   : ::write(fd(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return;
    }
    if (written < 0) {
      failure_ = errno;
      abandon();
      return;
    }
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
}

bool OutputSink::has_room() const { return waiting_.size() < kEnoughWaiting; }

void OutputSink::abandon() {
  broken_ = true;
  waiting_.clear();
}

LineRelay::LineRelay(FileDescriptor source, OutputSink& sink, std::string prefix)
    : source_(std::move(source)), sink_(&sink), prefix_(std::move(prefix)) {}

void LineRelay::read_once() {
  std::array<char, 65536> buffer;
  const ssize_t bytes = ::read(source_.get(), buffer.data(), buffer.size());
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (bytes <= 0) {
    close();
    return;
  }
  take({buffer.data(), static_cast<std::size_t>(bytes)});
  if (sink_->broken()) {
    close();
  }
}

void LineRelay::take(std::string_view text) {
  partial_ += text;
  emit_complete_lines();
  if (partial_.size() >= kLongestLine) {
    emit(partial_ + "\n");
    partial_.clear();
  }
}

void LineRelay::emit_complete_lines() {
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = partial_.find_first_of("\r\n", begin);
    // A \r at the very end may be half of \r\n; what follows will tell.
    if (end == std::string::npos || (partial_[end] == '\r' && end + 1 == partial_.size())) {
      break;
    }
    const bool two = partial_[end] == '\r' && partial_[end + 1] == '\n';
    const std::size_t next = end + (two ? 2 : 1);
    emit(std::string_view(partial_).substr(begin, next - begin));
    begin = next;
  }
  partial_.erase(0, begin);
}

void LineRelay::emit(std::string_view line) {
  if (!is_blank(line)) {
    last_line_ = line.substr(0, line.find_last_not_of("\r\n") + 1);
  }
  sink_->append(prefix_ + std::string(line));
}

void LineRelay::close() {
  if (!partial_.empty()) {
    emit(partial_ + (partial_.back() == '\r' ? "" : "\n"));
    partial_.clear();
  }
  source_.reset();
}

}  // namespace lockstep::launch
