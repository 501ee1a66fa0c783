#include "plan/outline.h"

#include "base/bucket_plan.h"
#include "lockstep/error.h"

#include <algorithm>

namespace lockstep::plan {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kAssumedBlocks = 32;
// Buckets that a step's timeline shows one by one; of more, several in a row are one entry.
constexpr std::int64_t kMostEntries = 1024;

std::int64_t ceil_of(std::int64_t n, std::int64_t parts) { return (n + parts - 1) / parts; }

// Elements × ppm / 1e6 without overflow.
std::int64_t frozen_of(std::int64_t elements, std::int64_t ppm) {
  return elements / kMillion * ppm + elements % kMillion * ppm / kMillion;
}

std::int64_t narrow_bytes(Precision precision) { return precision == Precision::bf16 ? 2 : 4; }

std::int64_t bytes_of(const Amount& amount, Precision precision) {
  return amount.narrow * narrow_bytes(precision) + amount.wide * 4;
}

Amount amount_of(const Member& member, std::int64_t elements) {
  return member.keep_f32 ? Amount{0, elements} : Amount{elements, 0};
}

// Members outside of all blocks stand before the first one (embeddings) or behind the last (the
// final norm, an untied head).
std::int64_t after_of(const std::vector<Member>& members, std::size_t index, std::int64_t blocks) {
  if (members[index].unit > 0) {
    return blocks + 1 - static_cast<std::int64_t>(members[index].unit);
  }
  const bool behind =
      std::any_of(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(index),
                  [](const Member& earlier) { return earlier.unit > 0; });
  return behind ? 0 : blocks + 1;
}

// Part `index` of `parts` nearly equal ones.
std::int64_t part_of(std::int64_t n, std::int64_t parts, std::int64_t index) {
  return n / parts + (index < n % parts ? 1 : 0);
}

void add_equal_units(Outline& outline, std::int64_t unit_blocks) {
  for (std::int64_t first = 0; first < outline.blocks; first += unit_blocks) {
    Amount unit;
    for (std::int64_t block = first; block < std::min(outline.blocks, first + unit_blocks);
         ++block) {
      unit += {part_of(outline.trained.narrow, outline.blocks, block), 0};
    }
    outline.units.push_back(unit);
  }
}

void add_equal_buckets(Outline& outline, std::int64_t bucket_elements) {
  const std::int64_t count = ceil_of(outline.trained.narrow, bucket_elements);
  const std::int64_t entries = std::min(count, kMostEntries);
  std::int64_t done = 0;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    const std::int64_t collectives = part_of(count, entries, entry);
    const std::int64_t left = outline.trained.narrow - done;
    const std::int64_t each = std::min(bucket_elements, ceil_of(left, collectives));
    done += std::min(left, each * collectives);
    const auto share = static_cast<double>(done) / static_cast<double>(outline.trained.narrow);
    const auto after = static_cast<std::int64_t>(share * static_cast<double>(outline.blocks));
    outline.buckets.push_back({.amount = {each, 0},
                               .count = collectives,
                               .after = std::clamp<std::int64_t>(after, 1, outline.blocks)});
  }
}

}  // namespace

Amount shard_of(const Amount& amount, std::int64_t shards) {
  return {ceil_of(amount.narrow, shards), ceil_of(amount.wide, shards)};
}

Outline outline_of(const std::vector<Member>& members, const OutlineOptions& options) {
  Outline outline;
  outline.parts_known = true;
  std::vector<Amount> trained;
  std::vector<std::int64_t> bytes;
  std::size_t blocks = 0;
  for (const Member& member : members) {
    const std::int64_t frozen = frozen_of(member.elements, options.frozen_ppm);
    trained.push_back(amount_of(member, member.elements - frozen));
    bytes.push_back(bytes_of(trained.back(), options.precision));
    outline.trained += trained.back();
    outline.frozen += amount_of(member, frozen);
    blocks = std::max(blocks, member.unit);
  }
  outline.blocks = static_cast<std::int64_t>(blocks);
  outline.units.resize(static_cast<std::size_t>(ceil_of(outline.blocks, options.unit_blocks)));
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t unit = members[i].unit;
    (unit == 0 ? outline.root
               : outline.units[(unit - 1) / static_cast<std::size_t>(options.unit_blocks)]) +=
        trained[i];
  }
  for (const auto& indices : plan_buckets(bytes, bucket_sizes_of(options.bucket_mb))) {
    Bucket bucket;
    for (const std::size_t index : indices) {
      bucket.amount += trained[index];
      bucket.after = std::max(bucket.after, after_of(members, index, outline.blocks));
    }
    outline.buckets.push_back(bucket);
  }
  return outline;
}

Outline outline_of(std::int64_t elements, std::int64_t blocks, const OutlineOptions& options) {
  if (options.bucket_mb == 0) {
    throw UsageError(
        "--bucket-mb 0: one collective per parameter needs to know the parameters; give --model "
        "instead of --params");
  }
  Outline outline;
  outline.parts_known = blocks > 0;
  outline.frozen = {frozen_of(elements, options.frozen_ppm), 0};
  outline.trained = {elements - outline.frozen.narrow, 0};
  outline.blocks = blocks > 0 ? blocks : kAssumedBlocks;
  add_equal_units(outline, options.unit_blocks);
  const std::int64_t size = narrow_bytes(options.precision);
  add_equal_buckets(outline,
                    std::max<std::int64_t>(1, bucket_sizes_of(options.bucket_mb).bytes / size));
  return outline;
}

}  // namespace lockstep::plan
