#include "train/event_file.h"

#include "lockstep/error.h"
#include "train/crc32c.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace lockstep::train {
namespace {

template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
}

// How a field's value is laid out (protocol buffers' encoding guide).
enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_key(std::string& message, std::uint32_t field, Wire wire) {
  append_varint(message, field << 3 | static_cast<std::uint32_t>(wire));
}

void append_bytes(std::string& message, std::uint32_t field, std::string_view value) {
  append_key(message, field, Wire::bytes);
  append_varint(message, value.size());
  message.append(value);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// An Event of now: wall_time = 1, step = 2.
std::string event_at(std::int64_t step) {
  std::string event;
  append_key(event, 1, Wire::fixed64);
  append_little_endian(event, std::bit_cast<std::uint64_t>(seconds_now()));
  append_key(event, 2, Wire::varint);
  append_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

// The first event of a file: file_version = 3.
std::string version_event() {
  std::string event = event_at(0);
  append_bytes(event, 3, "brain.Event:2");
  return event;
}

// session_log = 7 with status = 1 START = 1.
std::string start_event(std::int64_t first_step) {
  std::string session;
  append_key(session, 1, Wire::varint);
  append_varint(session, 1);
  std::string event = event_at(first_step);
  append_bytes(event, 7, session);
  return event;
}

// summary = 5 with one value = 1 {tag = 1, simple_value = 2} for each scalar.
std::string scalar_event(std::int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    append_bytes(value, 1, scalar.tag);
    append_key(value, 2, Wire::fixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(scalar.value)));
    append_bytes(summary, 1, value);
  }
  std::string event = event_at(step);
  append_bytes(event, 5, summary);
  return event;
}

// Length and bytes, each behind its checksum.
std::string record_of(std::string_view event) {
  std::string record;
  append_little_endian(record, std::uint64_t{event.size()});
  append_little_endian(record, masked_crc32c(record));
  record.append(event);
  append_little_endian(record, masked_crc32c(event));
  return record;
}

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

std::string file_name(int number) {
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%010lld", static_cast<long long>(seconds_now()));
  return std::string("events.out.tfevents.") + seconds.data() + "." + host_name() + "." +
         std::to_string(::getpid()) + "." + std::to_string(number);
}

}  // namespace

EventFile::EventFile(const std::string& folder, std::int64_t first_step) {
  for (int number = 0; descriptor_ < 0; ++number) {
    path_ = folder + "/" + file_name(number);
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0 && errno != EEXIST) {
      throw SystemError(path_ + ": can't be made: " + std::strerror(errno));
    }
  }
  try {
    write(version_event());
    write(start_event(first_step));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

EventFile::~EventFile() { ::close(descriptor_); }

void EventFile::add(std::int64_t step, std::span<const Scalar> scalars) {
  write(scalar_event(step, scalars));
}

void EventFile::write(std::string_view event) {
  const std::string record = record_of(event);
  for (std::size_t written = 0; written < record.size();) {
    const ssize_t count = ::write(descriptor_, record.data() + written, record.size() - written);
    if (count < 0 && errno != EINTR) {
      throw SystemError(path_ + ": writing failed: " + std::strerror(errno));
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
}

}  // namespace lockstep::train
