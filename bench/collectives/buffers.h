// The memory that a collective is measured on.
#pragma once

#include "bench/collectives/options.h"
#include "lockstep/group.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep::bench {

// A collective on one kind of memory, in place, at one size.
struct Question {
  Collective collective = Collective::all_reduce;
  Dtype dtype = Dtype::f32;
  std::int64_t bytes = 0;  // X
  bool symmetric = true;
  Algorithm algorithm = Algorithm::automatic;
};

// How many buffers of `bytes` each rank rotates through, so that a rotation over all ranks is four
// times the cache: what a repeat touches has then left it. One below and at 1 MB.
std::int64_t rotation(std::int64_t bytes, int ranks, std::int64_t cache_bytes);

// Buffers to rotate through, on every rank of a group.
class Buffers {
 public:
  virtual ~Buffers() = default;
  // This rank's memory of one buffer, X bytes.
  virtual std::span<std::byte> bytes(std::int64_t buffer) = 0;
  // Collective: runs the collective on one buffer, to its end. Reductions take the mean, so that
  // values stay where they are however often it runs.
  virtual void run(std::int64_t buffer) = 0;
};

// Collective. `group` must outlive the buffers. Throws SystemError when there is no memory.
std::unique_ptr<Buffers> make_buffers(Group& group, const Question& question, std::int64_t count);

}  // namespace lockstep::bench
