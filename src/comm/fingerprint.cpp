#include "comm/fingerprint.h"

#include <algorithm>
#include <bit>
#include <sstream>

namespace lockstep::comm {
namespace {

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

std::string quoted_name(const Fingerprint& fingerprint) {
  return fingerprint.name[0] == '\0' ? std::string()
                                     : "'" + std::string(fingerprint.name.data()) + "'";
}

// "f32[1000]+bf16[64]".
std::string elements(const Fingerprint& fingerprint) {
  std::string text;
  for (std::size_t i = 0; i < fingerprint.parts; ++i) {
    const auto& part = fingerprint.part[i];
    text += (i == 0 ? "" : "+") + std::string(lockstep::name_of(part.dtype)) + "[" +
            std::to_string(part.count) + "]";
    if (part.widened) {
      text += " into f32";
    }
    if (part.round_to) {
      text += " rounded to " + std::string(lockstep::name_of(*part.round_to));
    }
  }
  return text;
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
  const std::string name = quoted_name(fingerprint);
  if (!name.empty()) {
    out << " " << name;
  }
  if (fingerprint.parts > 0) {
    out << " " << elements(fingerprint);
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
  if (moves_payload(fingerprint.kind)) {
    out << memory(fingerprint) << ", " << lockstep::name_of(fingerprint.algorithm);
  }
  return out.str();
}

std::string describe_briefly(const Fingerprint& fingerprint) {
  const std::string name = quoted_name(fingerprint);
  const std::string size = elements(fingerprint);
  const std::string what =
      std::string(name_of(fingerprint.kind)) + (size.empty() ? "" : " " + size);
  const std::string number = "#" + std::to_string(fingerprint.sequence);
  return name.empty() ? what + " (" + number + ")" : name + " (" + what + ", " + number + ")";
}

}  // namespace lockstep::comm
