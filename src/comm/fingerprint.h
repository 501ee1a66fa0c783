// What a rank says about the operation it enters, for its peers to compare with theirs.
#pragma once

#include "lockstep/algorithm.h"
#include "lockstep/dtype.h"
#include "lockstep/group.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::comm {

// Those that move payload come first.
enum class Kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  send,
  recv,
  barrier,
  split,
  allocate_symmetric,
  allocate_host,
};

std::string_view name_of(Kind kind);
bool moves_payload(Kind kind);
std::string_view name_of(ReduceOp op);

inline constexpr std::size_t kMaxParts = 4;

// Plain bytes: it is compared and copied in shared memory.
struct Fingerprint {
  struct Part {
    std::uint64_t segment = 0;  // SharedMemory::id(); 0 is a plain span
    std::int64_t offset_bytes = 0;
    std::int64_t count = 0;
    Dtype dtype = Dtype::u8;
    std::optional<Dtype> round_to = {};
    bool widened = false;  // the result keeps f32 sums of 16-bit elements
    friend bool operator==(const Part&, const Part&) = default;
  };

  std::uint64_t sequence = 0;   // of the operation in its group, from 1
  std::int64_t entered_ns = 0;  // monotonic clock; not compared
  std::uint64_t scale_bits = 0;
  std::int32_t root = -1;
  Kind kind = Kind::barrier;
  Algorithm algorithm = Algorithm::direct;  // never automatic
  ReduceOp op = ReduceOp::sum;
  bool scaled = false;
  std::uint8_t parts = 0;
  std::array<Part, kMaxParts> part = {};
  std::array<char, 48> name = {};  // zero-terminated

  void set_name(std::string_view text);
  void add(const Part& added) { part[parts++] = added; }
};

// Whether two ranks entered the same operation (entered_ns aside).
bool same(const Fingerprint& a, const Fingerprint& b);

// "all_reduce 'bucket 3' f32[1000] sum, scale 0.5, symmetric (segment 2, byte 64), direct".
std::string describe(const Fingerprint& fingerprint);

// "'bucket 3' (all_reduce f32[1000], #15)".
std::string describe_briefly(const Fingerprint& fingerprint);

}  // namespace lockstep::comm
