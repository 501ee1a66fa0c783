// Flight recorders' files, made up and damaged, for tests of what reads them.
#pragma once

#include "comm/flight_recorder.h"
#include "support/temporary_folder.h"

#include <memory>
#include <string>

namespace lockstep::test {

// A record as the world's rank of the same number makes it.
inline comm::FlightRecord flight_record(std::uint64_t number, const std::string& name) {
  comm::Fingerprint fingerprint;
  fingerprint.sequence = number;
  fingerprint.entered_ns = static_cast<std::int64_t>(number) * 1'000'000'000;
  fingerprint.set_name(name);
  comm::FlightRecord record = comm::record_of(fingerprint);
  record.number = number;
  record.group = 77;
  record.group_size = 4;
  comm::set_text(record.group_name, "world");
  return record;
}

// Enters operation `number` and, unless it ends `inside`, leaves it half a second later.
inline void fly(comm::FlightRecorder& recorder, std::uint64_t number, const std::string& name,
                bool inside = false) {
  comm::FlightRecord record = flight_record(number, name);
  recorder.enter(record);
  if (!inside) {
    record.started_ns = record.finished_ns = record.left_ns = record.issued_ns + 500'000'000;
    recorder.update(record);
  }
}

// Changes bytes of a file in place, or cuts it.
inline void overwrite(const std::string& path, std::size_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
  EXPECT_TRUE(file) << path;
}

}  // namespace lockstep::test
