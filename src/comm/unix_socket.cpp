#include "comm/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <poll.h>

namespace lockstep::comm {
namespace {

struct Address {
  sockaddr_un address{};
  socklen_t length = 0;
};

Address address_of(const std::string& name) {
  Address result;
  result.address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof result.address.sun_path - 1);
  std::memcpy(result.address.sun_path + 1, name.data(), length);
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return result;
}

FileDescriptor new_socket(int flags) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!socket.valid()) {
    throw_errno("socket(AF_UNIX)");
  }
  return socket;
}

// Bounds the wait for a full queue, and for the rest of a message whose sender stopped in between.
void set_patience(const FileDescriptor& socket) {
  const timeval for_queue{0, 50'000};
  const timeval for_rest{5, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &for_queue, sizeof for_queue);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &for_rest, sizeof for_rest);
}

// Keeps the descriptor of a control message, which must not stay open unowned.
void take_carried(msghdr& message, FileDescriptor* carried) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
      FileDescriptor owned(descriptor);
      if (carried != nullptr) {
        *carried = std::move(owned);
      }
    }
  }
}

}  // namespace

std::optional<FileDescriptor> listen_abstract(const std::string& name) {
  FileDescriptor listener = new_socket(SOCK_NONBLOCK);
  const Address address = address_of(name);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) !=
      0) {
    if (errno == EADDRINUSE) {
      return std::nullopt;
    }
    throw_errno("bind of the abstract socket '" + name + "'");
  }
  if (::listen(listener.get(), SOMAXCONN) != 0) {
    throw_errno("listen on the abstract socket '" + name + "'");
  }
  return listener;
}

std::optional<FileDescriptor> connect_abstract(const std::string& name) {
  FileDescriptor socket = new_socket(0);
  set_patience(socket);
  const Address address = address_of(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.address),
                address.length) == 0) {
    return socket;
  }
  if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) {
    return std::nullopt;
  }
  throw_errno("connect to the abstract socket '" + name + "'");
}

std::optional<FileDescriptor> accept_waiting(const FileDescriptor& listener) {
  FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    return std::nullopt;
  }
  set_patience(socket);
  return socket;
}

Peer peer_of(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    throw_errno("SO_PEERCRED");
  }
  return {peer.pid, peer.uid};
}

bool readable(const FileDescriptor& socket, std::chrono::milliseconds timeout) {
  pollfd entry{socket.get(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(timeout.count())) > 0;
}

bool send_bytes(const FileDescriptor& socket, const void* data, std::size_t bytes, int carried) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    iovec piece{const_cast<char*>(at), bytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (carried >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &carried, sizeof carried);
    }
    const ssize_t sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) {
      return false;
    }
    if (sent > 0) {
      at += sent;
      bytes -= static_cast<std::size_t>(sent);
      carried = -1;
    }
  }
  return true;
}

bool receive_bytes(const FileDescriptor& socket, void* data, std::size_t bytes,
                   FileDescriptor* carried) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    iovec piece{at, bytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t received = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
    if (received == 0 || (received < 0 && errno != EINTR)) {
      return false;
    }
    if (received > 0) {
      take_carried(message, carried);
      at += received;
      bytes -= static_cast<std::size_t>(received);
    }
  }
  return true;
}

}  // namespace lockstep::comm
