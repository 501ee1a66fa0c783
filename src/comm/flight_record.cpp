#include "comm/flight_record.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <tuple>

namespace lockstep::comm {
namespace {

constexpr std::uint8_t kDtypes = static_cast<std::uint8_t>(Dtype::u8) + 1;
constexpr std::uint8_t kOps = static_cast<std::uint8_t>(ReduceOp::min) + 1;

// One number for all places, mixed word by word.
std::uint64_t memory_of(const Fingerprint& fingerprint) {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < fingerprint.parts; ++i) {
    const Fingerprint::Part& part = fingerprint.part[i];
    if (part.segment != 0) {
      digest = (digest ^ part.segment) * 0x9e3779b97f4a7c15;
      digest = (digest ^ static_cast<std::uint64_t>(part.offset_bytes)) * 0x9e3779b97f4a7c15;
    }
  }
  return digest;
}

template <std::size_t size>
bool ends(const std::array<char, size>& text) {
  return std::ranges::find(text, '\0') != text.end();
}

}  // namespace

FlightRecord record_of(const Fingerprint& fingerprint) {
  FlightRecord record;
  record.sequence = fingerprint.sequence;
  record.issued_ns = fingerprint.entered_ns;
  for (std::size_t i = 0; i < fingerprint.parts; ++i) {
    const Fingerprint::Part& part = fingerprint.part[i];
    record.count[i] = part.count;
    record.dtype[i] = static_cast<std::uint8_t>(part.dtype);
    record.round_to[i] =
        part.round_to ? static_cast<std::uint8_t>(*part.round_to) : FlightRecord::kNoRounding;
    record.widened |= static_cast<std::uint8_t>(part.widened ? 1u << i : 0u);
  }
  record.scale_bits = fingerprint.scale_bits;
  record.memory = memory_of(fingerprint);
  record.root = fingerprint.root;
  record.op = static_cast<std::uint8_t>(fingerprint.op);
  record.parts = fingerprint.parts;
  record.scaled = fingerprint.scaled ? 1 : 0;
  set_text(record.kind, name_of(fingerprint.kind));
  set_text(record.algorithm, name_of(fingerprint.algorithm));
  record.name = fingerprint.name;
  return record;
}

bool readable(const FlightRecord& record) {
  if (record.parts > kMaxParts || record.op >= kOps || record.sequence == 0 ||
      record.group_size < 1 || record.group_rank < 0 || record.group_rank >= record.group_size) {
    return false;
  }
  for (std::size_t i = 0; i < record.parts; ++i) {
    const std::uint8_t round_to = record.round_to[i];
    if (record.count[i] < 0 || record.dtype[i] >= kDtypes ||
        (round_to >= kDtypes && round_to != FlightRecord::kNoRounding)) {
      return false;
    }
  }
  return record.kind[0] != '\0' && ends(record.kind) && ends(record.algorithm) &&
         ends(record.name) && ends(record.group_name);
}

bool same_call(const FlightRecord& a, const FlightRecord& b) {
  const auto call = [](const FlightRecord& r) {
    return std::tie(r.group, r.sequence, r.count, r.scale_bits, r.memory, r.root, r.dtype,
                    r.round_to, r.op, r.parts, r.scaled, r.widened, r.kind, r.algorithm, r.name);
  };
  return call(a) == call(b);
}

std::string elements(const FlightRecord& record) {
  std::string text;
  for (std::size_t i = 0; i < record.parts; ++i) {
    text += (i == 0 ? "" : "+") +
            std::string(lockstep::name_of(static_cast<Dtype>(record.dtype[i]))) + "[" +
            std::to_string(record.count[i]) + "]";
    if ((record.widened >> i & 1) != 0) {
      text += " into f32";
    }
    if (record.round_to[i] != FlightRecord::kNoRounding) {
      text +=
          " rounded to " + std::string(lockstep::name_of(static_cast<Dtype>(record.round_to[i])));
    }
  }
  return text;
}

std::string describe_briefly(const FlightRecord& record) {
  const std::string size = elements(record);
  const std::string what = record.kind.data() + (size.empty() ? "" : " " + size);
  const std::string number = "#" + std::to_string(record.sequence);
  return record.name[0] == '\0'
             ? what + " (" + number + ")"
             : "'" + std::string(record.name.data()) + "' (" + what + ", " + number + ")";
}

std::string describe(const FlightRecord& record) {
  std::ostringstream out;
  out << record.kind.data();
  if (record.name[0] != '\0') {
    out << " '" << record.name.data() << "'";
  }
  if (record.parts > 0) {
    out << " " << elements(record);
  }
  if (std::string_view(record.kind.data()).find("reduce") != std::string_view::npos) {
    out << " " << name_of(static_cast<ReduceOp>(record.op));
  }
  if (record.scaled != 0) {
    out << ", scale " << std::bit_cast<double>(record.scale_bits);
  }
  if (record.root >= 0) {
    out << ", root " << record.root;
  }
  out << (record.memory != 0 ? ", symmetric" : "");
  return out.str();
}

}  // namespace lockstep::comm
