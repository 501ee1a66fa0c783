#include "launch/control_socket.h"

#include "lockstep/error.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>

namespace lockstep::launch {
namespace {

constexpr std::uint32_t kMagic = 0x4c4b5331;  // "LKS1"
constexpr std::size_t kLongestText = 8000;

struct Header {
  std::uint32_t magic = kMagic;
  std::int32_t rank = 0;
  std::uint32_t kind = 0;
  std::uint32_t text_bytes = 0;
  std::int64_t time_ns = 0;
};

struct Address {
  sockaddr_un value{};
  socklen_t bytes = 0;
};

// Abstract: the name starts with a zero byte, needs no file and vanishes with the socket.
Address abstract_address(const std::string& name) {
  Address address;
  address.value.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.value.sun_path) - 1);
  std::memcpy(address.value.sun_path + 1, name.data(), length);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

bool sent_by_this_user(const msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
      return sender.uid == ::getuid();
    }
  }
  return false;
}

std::optional<FailureReport> decode(const char* data, std::size_t bytes) {
  Header header;
  if (bytes < sizeof(header)) {
    return std::nullopt;
  }
  std::memcpy(&header, data, sizeof(header));
  if (header.magic != kMagic || header.text_bytes != bytes - sizeof(header) || header.kind > 1) {
    return std::nullopt;
  }
  return FailureReport{.rank = header.rank,
                       .kind = static_cast<FailureKind>(header.kind),
                       .time_ns = header.time_ns,
                       .text = std::string(data + sizeof(header), header.text_bytes)};
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool send_report(const std::string& name, int rank, FailureKind kind,
                 std::string_view text) noexcept {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return false;
  }
  const timeval patience{.tv_sec = 1,
                         .tv_usec = 0};  // the launcher's queue may be full for a moment
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const std::size_t length = std::min(text.size(), kLongestText);
  Header header{.rank = rank,
                .kind = static_cast<std::uint32_t>(kind),
                .text_bytes = static_cast<std::uint32_t>(length),
                .time_ns = monotonic_ns()};
  std::array<iovec, 2> parts{{{&header, sizeof(header)}, {const_cast<char*>(text.data()), length}}};
  Address address = abstract_address(name);
  msghdr message{};
  message.msg_name = &address.value;
  message.msg_namelen = address.bytes;
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(header) + length);
}

ControlSocket::ControlSocket(const std::string& name)
    : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const Address address = abstract_address(name);
  const int on = 1;
  if (!socket_ || ::setsockopt(fd(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      ::bind(fd(), reinterpret_cast<const sockaddr*>(&address.value), address.bytes) != 0) {
    throw SystemError("control socket '" + name + "': " + std::strerror(errno));
  }
}

std::optional<FailureReport> ControlSocket::receive() {
  for (;;) {
    std::array<char, sizeof(Header) + kLongestText> data;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
    iovec part{data.data(), data.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(fd(), &message, MSG_CMSG_CLOEXEC);
    if (bytes < 0) {
      return std::nullopt;
    }
    if (auto report = decode(data.data(), static_cast<std::size_t>(bytes));
        report && sent_by_this_user(message)) {
      return report;
    }
  }
}

}  // namespace lockstep::launch
