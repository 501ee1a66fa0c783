#include "comm/flight_log.h"

#include "lockstep/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace lockstep::comm {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostOperations = std::uint64_t{1} << 62;

// Up to the size that a file of this build has; more is foreign anyway.
std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kFlightFileBytes + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad() || (!file && !file.eof())) {
    return std::nullopt;
  }
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

template <std::size_t size>
bool ends(const std::array<char, size>& text) {
  return std::ranges::find(text, '\0') != text.end();
}

// Why the header is not one to read by; empty: it is.
std::string problem_of(const FlightHeader& header) {
  if (header.magic != kFlightMagic) {
    return "is no flight recorder's file";
  }
  const bool build_readable = ends(header.build);
  if (header.version != kFlightVersion || header.record_bytes != sizeof(FlightRecord) ||
      header.records != kFlightRecords) {
    return "has the layout of another build" +
           (build_readable ? " (lockstep " + std::string(header.build.data()) + ")" : "") +
           "; read it with that build's doctor";
  }
  if (!build_readable || !ends(header.boot) || !ends(header.host) || header.size < 1 ||
      header.rank < 0 || header.rank >= header.size || header.last_number > kMostOperations ||
      header.failure_bytes > header.failure.size()) {
    return "is damaged: its header makes no sense";
  }
  return "";
}

// Of a living rank, places that it may have written while they were read say nothing.
void drop_overwritten(const std::string& path, FlightLog& log) {
  std::ifstream file(path, std::ios::binary);
  FlightHeader now;
  if (file.read(reinterpret_cast<char*>(&now), sizeof now) &&
      now.last_number > log.header.last_number) {
    std::erase_if(log.records, [&](const FlightRecord& record) {
      return record.number + kFlightRecords <= now.last_number + 1;
    });
  }
}

void read_records(const std::string& bytes, FlightLog& log) {
  const std::uint64_t last = log.header.last_number;
  const std::uint64_t count = std::min(last, kFlightRecords);
  const std::size_t there = (bytes.size() - kFlightHeaderBytes) / sizeof(FlightRecord);
  for (std::uint64_t number = last - count + 1; number <= last && count > 0; ++number) {
    const std::uint64_t place = (number - 1) % kFlightRecords;
    if (place >= there) {
      continue;
    }
    FlightRecord record;
    std::memcpy(&record, bytes.data() + kFlightHeaderBytes + place * sizeof record, sizeof record);
    // A later one where the rank went on while we read.
    const bool whole = record.number >= number && record.number < kMostOperations &&
                       (record.number - number) % kFlightRecords == 0 && readable(record);
    if (whole) {
      log.records.push_back(record);
    } else {
      ++log.torn;
    }
  }
  std::ranges::sort(log.records, {}, &FlightRecord::number);
}

}  // namespace

Whereabouts FlightLog::where() const {
  Whereabouts where;
  where.handle = header.state == FlightHeader::State::closed ? Whereabouts::Handle::left
                                                             : Whereabouts::Handle::held;
  where.waiting_since_ns = header.waiting_since_ns;
  where.heartbeat_ns = header.heartbeat_ns;
  where.process = header.process;
  for (const FlightRecord& record : records) {
    where.entered = record;
    if (record.left_ns >= std::max<std::int64_t>(where.left.left_ns, 1)) {
      where.left = record;
    }
    if (record.number == header.awaited_number) {
      where.awaited = record;
    }
  }
  if (where.awaited.number == 0) {
    where.waiting_since_ns = 0;  // for what, is not there to tell
  }
  return where;
}

FlightFile read_flight(const std::string& path) {
  FlightFile file{.path = path, .log = std::nullopt, .problem = ""};
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    file.problem = error ? "can't be read: " + error.message() : "is no file";
    return file;
  }
  errno = 0;
  const auto bytes = contents(path);
  if (!bytes) {
    file.problem = std::string("can't be read: ") + std::strerror(errno != 0 ? errno : EIO);
    return file;
  }
  if (bytes->empty()) {
    file.problem = "is empty";
    return file;
  }
  FlightHeader header;
  header.magic = {};
  if (bytes->size() >= header.magic.size()) {
    std::memcpy(header.magic.data(), bytes->data(), header.magic.size());
  }
  const std::string size = "holds " + std::to_string(bytes->size()) + " of " +
                           std::to_string(kFlightFileBytes) + " bytes";
  if (bytes->size() < kFlightHeaderBytes && header.magic == kFlightMagic) {
    file.problem = "is cut short: " + size + ", not even its header";
    return file;
  }
  if (bytes->size() < kFlightHeaderBytes) {
    file.problem = "is no flight recorder's file";
    return file;
  }
  std::memcpy(static_cast<void*>(&header), bytes->data(), sizeof header);
  file.problem = problem_of(header);
  if (file.problem.empty()) {
    file.log.emplace();
    file.log->header = header;
    file.log->cut = bytes->size() < kFlightFileBytes ? size : "";
    read_records(*bytes, *file.log);
    drop_overwritten(path, *file.log);
  }
  return file;
}

std::vector<FlightFile> read_flights(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".flight")) {
      paths.push_back(entry->path().string());
    }
  }
  if (error) {
    throw SystemError("--flight " + folder + ": can't be listed: " + error.message());
  }
  std::ranges::sort(paths);
  std::vector<FlightFile> files;
  std::ranges::transform(paths, std::back_inserter(files), read_flight);
  return files;
}

}  // namespace lockstep::comm
