// What the formulas need to know of a model: how many elements, in which type, and in which parts
// they travel. Pure.
#pragma once

#include "plan/dials.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::plan {

// One parameter of a model, whatever the precision.
struct Member {
  std::int64_t elements = 0;
  std::size_t unit = 0;   // the block it belongs to, from 1; 0: none
  bool keep_f32 = false;  // stays in fp32 under bf16
};

// Elements by what they are held as.
struct Amount {
  std::int64_t narrow = 0;  // in the run's precision
  std::int64_t wide = 0;    // in fp32 whatever the precision

  std::int64_t elements() const { return narrow + wide; }
  Amount& operator+=(const Amount& other) {
    narrow += other.narrow;
    wide += other.wide;
    return *this;
  }
  friend bool operator==(const Amount&, const Amount&) = default;
};

// A rank's part of `amount` in `shards` equal ones: the largest, without the padding to granules
// that the engine adds (under 1 % of a real model's).
Amount shard_of(const Amount& amount, std::int64_t shards);

// Gradients that one collective exchanges.
struct Bucket {
  Amount amount;
  std::int64_t count = 1;  // collectives of this size that the entry stands for
  // How far backward must have come: 0 the head, b the b-th block of backward, blocks + 1 the
  // embedding.
  std::int64_t after = 0;
};

// Of what is trained; frozen parameters stay whole on every rank and do not travel.
struct Outline {
  Amount trained;
  Amount frozen;
  std::int64_t blocks = 0;
  // Are blocks and buckets the model's own? Else the model is a number of parameters: time is
  // estimated with equal parts, and memory counts none in flight.
  bool parts_known = false;
  std::vector<Amount> units;    // blocks in groups of Dials::unit_blocks, in forward's order
  Amount root;                  // what lies outside of all blocks
  std::vector<Bucket> buckets;  // in the order they fill in backward
};

struct OutlineOptions {
  double bucket_mb = 25;  // 1 MB = 1e6 bytes; 0: one collective per parameter
  std::int64_t unit_blocks = 1;
  Precision precision = Precision::bf16;
  std::int64_t frozen_ppm = 0;  // of every parameter's elements, in millionths
};

// `members` in registration order: the same buckets and units as the engine forms.
Outline outline_of(const std::vector<Member>& members, const OutlineOptions& options);

// The same of `elements` in `blocks` equal parts; blocks 0: not known, taken as 32. Throws
// UsageError for bucket_mb 0.
Outline outline_of(std::int64_t elements, std::int64_t blocks, const OutlineOptions& options);

}  // namespace lockstep::plan
