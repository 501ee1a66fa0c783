// Local stream sockets with names in the abstract namespace (no file, gone with their process),
// fixed-size messages and one descriptor riding on a message.
#pragma once

#include "comm/file_descriptor.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace lockstep::comm {

// Listens under `name` (without its leading zero byte). Nothing when the name is taken.
std::optional<FileDescriptor> listen_abstract(const std::string& name);

// Connects, or nothing when nobody listens (or its queue stays full) at the moment.
std::optional<FileDescriptor> connect_abstract(const std::string& name);

// The next connection, or nothing when none is waiting.
std::optional<FileDescriptor> accept_waiting(const FileDescriptor& listener);

// The process at the other end, as the kernel knows it. Throws SystemError.
struct Peer {
  pid_t process = 0;
  uid_t user = 0;
};
Peer peer_of(const FileDescriptor& socket);

// Waits until something can be read, the other end hung up, or the time is over.
bool readable(const FileDescriptor& socket, std::chrono::milliseconds timeout);

// False when the other end is gone. `carried` ≥ 0 is duplicated into the receiver.
bool send_bytes(const FileDescriptor& socket, const void* data, std::size_t bytes,
                int carried = -1);

// Blocks for all of `bytes`; false when the other end is gone, or stops for 5 s. A descriptor that
// rode along goes to `carried`, closed otherwise.
bool receive_bytes(const FileDescriptor& socket, void* data, std::size_t bytes,
                   FileDescriptor* carried = nullptr);

}  // namespace lockstep::comm
