#include "comm/fingerprint.h"

#include "comm/flight_record.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace lockstep::comm {
namespace {

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

std::string memory(const Fingerprint& fingerprint) {
  const auto& first = fingerprint.part[0];
  if (first.segment == 0) {
    return ", plain";
  }
  return ", symmetric (segment " + std::to_string(first.segment) + ", byte " +
         std::to_string(first.offset_bytes) + ")";
}

}  // namespace

bool moves_payload(Kind kind) { return kind < Kind::barrier; }

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return "all_reduce";
    case Kind::reduce_scatter:
      return "reduce_scatter";
    case Kind::all_gather:
      return "all_gather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::reduce:
      return "reduce";
    case Kind::gather:
      return "gather";
    case Kind::scatter:
      return "scatter";
    case Kind::all_to_all:
      return "all_to_all";
    case Kind::send:
      return "send";
    case Kind::recv:
      return "recv";
    case Kind::barrier:
      return "barrier";
    case Kind::split:
      return "split";
    case Kind::allocate_symmetric:
      return "allocate_symmetric";
    case Kind::allocate_host:
      return "allocate_host";
  }
  return "?";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::mean:
      return "mean";
    case ReduceOp::max:
      return "max";
    case ReduceOp::min:
      return "min";
  }
  return "?";
}

void Fingerprint::set_name(std::string_view text) {
  name.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), name.size() - 1), name.begin());
}

bool same(const Fingerprint& a, const Fingerprint& b) {
  return a.sequence == b.sequence && a.scale_bits == b.scale_bits && a.root == b.root &&
         a.kind == b.kind && a.algorithm == b.algorithm && a.op == b.op && a.scaled == b.scaled &&
         a.parts == b.parts && a.part == b.part && a.name == b.name;
}

std::string describe(const Fingerprint& fingerprint) {
  std::ostringstream out;
  out << name_of(fingerprint.kind);
  if (fingerprint.name[0] != '\0') {
    out << " '" << fingerprint.name.data() << "'";
  }
  if (fingerprint.parts > 0) {
    out << " " << elements(record_of(fingerprint));
  }
  if (reduces(fingerprint.kind)) {
    out << " " << name_of(fingerprint.op);
  }
  if (fingerprint.scaled) {
    out << ", scale " << std::bit_cast<double>(fingerprint.scale_bits);
  }
  if (fingerprint.root >= 0) {
    out << ", root " << fingerprint.root;
  }
  const bool between_two = fingerprint.kind == Kind::send || fingerprint.kind == Kind::recv;
  if (moves_payload(fingerprint.kind) && !between_two) {
    out << memory(fingerprint) << ", " << lockstep::name_of(fingerprint.algorithm);
  }
  return out.str();
}

std::string describe_briefly(const Fingerprint& fingerprint) {
  return describe_briefly(record_of(fingerprint));
}

}  // namespace lockstep::comm
