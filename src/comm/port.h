// Messages between processes that share no memory: what NetworkTransport and MirroredControl are
// written against. MPI stands behind it (mpi_port.h); in tests, threads of one process do.
//
// Every call returns at once. Transfers of one (sender, receiver, channel) match in the order of
// their calls, and both sides must name the same number of bytes. Calls of one Port are made by one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lockstep::comm {

class Port {
 public:
  // A message on its way; its buffer must stay until done() has said true.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    // Whether it has arrived (receive), or its buffer may be used again (send); moves what can
    // move. Throws SystemError with the library's words.
    virtual bool done() = 0;
    // Gives a receive up: nothing is written into its buffer any more.
    virtual void cancel() noexcept = 0;
  };

  // Bytes of one message at most.
  static constexpr std::int64_t kMostBytes = 1 << 30;
  // Channels are numbered from 0 to here.
  static constexpr int kMostChannels = 32'000;

  virtual ~Port() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "Open MPI 5.0.11".
  virtual const std::string& library() const = 0;

  virtual std::unique_ptr<Transfer> send(int peer, int channel,
                                         std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(int peer, int channel, std::span<std::byte> bytes) = 0;

  // A job that failed is not taken down in good order: peers may be gone.
  virtual void abandon() noexcept = 0;
};

}  // namespace lockstep::comm
