#include "comm/flight_recorder.h"

#include "comm/control.h"
#include "comm/file_descriptor.h"
#include "comm/process_state.h"
#include "lockstep/error.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <new>
#include <unistd.h>

namespace lockstep::comm {
namespace {

namespace fs = std::filesystem;

template <class T>
void store(T& word, T value) {
  std::atomic_ref<T>(word).store(value, std::memory_order_relaxed);
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, int code) {
  throw SystemError("flight recorder: " + path + ": " + what + ": " + std::strerror(code) +
                    "; name a folder that ranks can write to");
}

// A file of its whole size on the disk: a store into a hole on a full disk would kill the rank.
FileDescriptor create(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) {
    refuse(path, "can't be made", errno);
  }
  if (const int code = ::posix_fallocate(file.get(), 0, kFlightFileBytes); code != 0) {
    ::unlink(path.c_str());
    refuse(path, "can't take " + std::to_string(kFlightFileBytes) + " bytes", code);
  }
  return file;
}

FlightHeader header_of(const FlightRecorder::Identity& identity) {
  FlightHeader header;
  header.job = identity.job;
  header.rank = identity.rank;
  header.size = identity.size;
  header.process = ::getpid();
  if (const auto state = state_of(::getpid())) {
    header.process_started_at = state->started_at;
  }
  header.opened_ns = header.heartbeat_ns = now_ns();
  header.opened_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count();
  set_text(header.boot, boot_id());
  set_text(header.host, host_name());
  set_text(header.build, LOCKSTEP_VERSION);
  return header;
}

}  // namespace

FlightRecorder::FlightRecorder(const std::string& folder, const Identity& identity)
    : folder_(folder), process_(::getpid()) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    refuse(folder, "can't be made", error.value());
  }
  // An earlier rank may still have the file of this name mapped, which must not shrink under it.
  const std::string path = flight_path(folder, identity.rank);
  const std::string pending = path + "." + std::to_string(process_);
  const FileDescriptor file = create(pending);
  void* data = ::mmap(nullptr, kFlightFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    const int code = errno;
    ::unlink(pending.c_str());
    refuse(path, "can't be mapped", code);
  }
  data_ = static_cast<std::byte*>(data);
  header_ = new (data_) FlightHeader(header_of(identity));
  if (::rename(pending.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(pending.c_str());
    ::munmap(data_, kFlightFileBytes);
    refuse(path, "can't be put in place", code);
  }
}

FlightRecorder::~FlightRecorder() {
  if (process_ == ::getpid()) {
    store(header_->state, FlightHeader::State::closed);
  }
  ::munmap(data_, kFlightFileBytes);
}

FlightRecord& FlightRecorder::slot(std::uint64_t number) {
  auto* records = reinterpret_cast<FlightRecord*>(data_ + kFlightHeaderBytes);
  return records[(number - 1) % kFlightRecords];
}

void FlightRecorder::enter(const FlightRecord& record) {
  FlightRecord& place = slot(record.number);
  // Whole records only: the number goes first and comes back last.
  std::atomic_ref<std::uint64_t> number(place.number);
  number.exchange(0, std::memory_order_acquire);
  std::memcpy(reinterpret_cast<std::byte*>(&place) + sizeof place.number,
              reinterpret_cast<const std::byte*>(&record) + sizeof record.number,
              sizeof record - sizeof record.number);
  number.store(record.number, std::memory_order_release);
  store(header_->last_number, record.number);
  store(header_->heartbeat_ns, record.issued_ns);
}

void FlightRecorder::update(const FlightRecord& record) {
  FlightRecord& place = slot(record.number);
  if (std::atomic_ref(place.number).load(std::memory_order_relaxed) != record.number) {
    return;
  }
  store(place.started_ns, record.started_ns);
  store(place.finished_ns, record.finished_ns);
  store(place.left_ns, record.left_ns);
  store(place.steps_run, record.steps_run);
}

void FlightRecorder::wait_for(std::uint64_t number, std::int64_t since_ns) {
  store(header_->awaited_number, number);
  store(header_->waiting_since_ns, since_ns);
}

void FlightRecorder::stop_waiting() { store(header_->waiting_since_ns, std::int64_t{0}); }

void FlightRecorder::beat(std::int64_t now_ns) { store(header_->heartbeat_ns, now_ns); }

void FlightRecorder::fail(std::string_view text) {
  if (std::atomic_ref(header_->failure_bytes).load(std::memory_order_relaxed) != 0) {
    return;
  }
  const std::size_t length = std::min(text.size(), header_->failure.size());
  std::copy_n(text.begin(), length, header_->failure.begin());
  std::atomic_ref(header_->failure_bytes).store(std::uint64_t{length}, std::memory_order_release);
}

}  // namespace lockstep::comm
