// The control socket between ranks and launcher: an abstract Unix datagram socket. Datagrams queue
// in the launcher, so a report outlives the rank that sent it.
#pragma once

#include "launch/file_descriptor.h"
#include "launch/report.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::launch {

struct FailureReport {
  int rank = 0;
  FailureKind kind = FailureKind::cause;
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC of the sender, one clock for the whole host
  std::string text;
};

// Nanoseconds of CLOCK_MONOTONIC.
std::int64_t monotonic_ns();

// Sends a report to the socket `name`. Returns false when nobody listens. Text beyond 8,000 bytes
// is cut.
bool send_report(const std::string& name, int rank, FailureKind kind,
                 std::string_view text) noexcept;

// The launcher's end. Throws SystemError when the socket can't be made.
class ControlSocket {
 public:
  explicit ControlSocket(const std::string& name);
  int fd() const { return socket_.get(); }
  // The next report that waits, or nullopt. Datagrams of other users and malformed ones are
  // dropped.
  std::optional<FailureReport> receive();

 private:
  FileDescriptor socket_;
};

}  // namespace lockstep::launch
