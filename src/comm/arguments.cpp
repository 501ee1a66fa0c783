#include "comm/arguments.h"

#include "base/range.h"
#include "lockstep/error.h"

#include <bit>

namespace lockstep::comm {
namespace {

std::string named(Kind kind) { return std::string(name_of(kind)) + ": "; }

std::string elements(const Span& span) {
  return std::string(lockstep::name_of(span.dtype)) + "[" + std::to_string(span.count) + "]";
}

bool overlap(const Span& a, const Span& b) {
  const auto* a_begin = static_cast<const std::byte*>(a.data);
  const auto* b_begin = static_cast<const std::byte*>(b.data);
  return a.bytes() > 0 && b.bytes() > 0 && a_begin < b_begin + b.bytes() &&
         b_begin < a_begin + a.bytes();
}

void require_same_dtype(Kind kind, const Span& whole, const Span& block) {
  if (block.dtype != whole.dtype) {
    throw UsageError(named(kind) + "a block of " + elements(whole) + " has its dtype, got " +
                     elements(block));
  }
}

void require_block_size(Kind kind, const Span& whole, std::int64_t count,
                        const Communicator& group) {
  const Range range = block_of(whole.count, group.size(), group.rank());
  if (count != range.size()) {
    throw UsageError(named(kind) + "rank " + std::to_string(group.rank()) + "'s block of " +
                     elements(whole) + " on " + std::to_string(group.size()) + " ranks has " +
                     std::to_string(range.size()) + " elements, got " + std::to_string(count));
  }
}

}  // namespace

Reduction reduction_of(const ReduceOptions& options, Dtype dtype, int ranks) {
  const std::string type(lockstep::name_of(dtype));
  if (options.op == ReduceOp::mean && !is_floating(dtype)) {
    throw UsageError("mean of " + type + " elements is not a whole number: use sum and divide");
  }
  if (options.scale && options.op != ReduceOp::sum) {
    throw UsageError("scale goes only with sum, got " + std::string(name_of(options.op)));
  }
  if (options.scale && !is_floating(dtype)) {
    throw UsageError("scale needs floating-point elements, got " + type);
  }
  require_rounding(options.round_to, dtype);
  Reduction reduction{options.op, options.scale, options.round_to};
  if (options.op == ReduceOp::mean) {
    reduction.op = ReduceOp::sum;
    if (ranks > 1) {
      reduction.scale = 1.0 / ranks;
    }
  }
  return reduction;
}

void require_rounding(std::optional<Dtype> round_to, Dtype dtype) {
  if (!round_to) {
    return;
  }
  if (dtype != Dtype::f32 || (*round_to != Dtype::bf16 && *round_to != Dtype::f16)) {
    throw UsageError("round_to rounds f32 elements to bf16 or f16, got " +
                     std::string(lockstep::name_of(dtype)) + " to " +
                     std::string(lockstep::name_of(*round_to)));
  }
}

void require_plain(Kind kind, const Span& span) {
  if (span.count < 0) {
    throw UsageError(named(kind) + "negative count " + std::to_string(span.count));
  }
  if (span.count > 0 && span.data == nullptr) {
    throw UsageError(named(kind) + elements(span) + " at a null pointer");
  }
  if (reinterpret_cast<std::uintptr_t>(span.data) %
          static_cast<std::uintptr_t>(size_of(span.dtype)) !=
      0) {
    throw UsageError(named(kind) + elements(span) + " is not aligned to its element size");
  }
}

void require_no_callback(Kind kind, const ReduceOptions& options) {
  if (options.on_reduced) {
    throw UsageError(named(kind) + "on_reduced goes only with symmetric memory");
  }
}

void require_symmetric(Kind kind, const SymmetricSpan& span, const Communicator& group) {
  if (span.memory == nullptr) {
    throw UsageError(named(kind) +
                     "the symmetric span has no memory: take it from "
                     "SymmetricMemory::span()");
  }
  if (span.memory->group() != group.group_id()) {
    throw UsageError(named(kind) + "symmetric memory '" + span.memory->name() +
                     "' belongs to another group than '" + group.options().name +
                     "': allocate it with the group that uses it");
  }
  if (span.count < 0 || span.offset_bytes < 0 || span.offset_bytes > span.memory->bytes() ||
      span.count > (span.memory->bytes() - span.offset_bytes) / size_of(span.dtype)) {
    throw UsageError(named(kind) + elements(span.local()) + " at byte " +
                     std::to_string(span.offset_bytes) + " does not fit into symmetric memory '" +
                     span.memory->name() + "' of " + std::to_string(span.memory->bytes()) +
                     " bytes");
  }
  require_plain(kind, span.local());
}

void require_parts(Kind kind, std::size_t parts, const ReduceOptions& options) {
  if (parts == 0 || parts > kMaxParts) {
    throw UsageError(named(kind) + "expected 1 to " + std::to_string(kMaxParts) + " parts, got " +
                     std::to_string(parts));
  }
  if (options.round_to) {
    throw UsageError(std::string(name_of(kind)) +
                     " of parts: set round_to on each part, not in the options");
  }
}

void require_scattered(const ScatterPart& part, const ReduceOptions& options,
                       const Communicator& group) {
  const auto& [input, output, round_to] = part;
  require_rounding(round_to, input.dtype);
  const bool widens = output.dtype != input.dtype;
  if (widens &&
      (output.dtype != Dtype::f32 || !is_floating(input.dtype) || size_of(input.dtype) != 2)) {
    throw UsageError(named(Kind::reduce_scatter) + "a block of " + elements(input.local()) +
                     " may be of its dtype, or f32 where that is bf16 or f16; got " +
                     elements(output));
  }
  if (output.data == nullptr && output.count > 0) {
    if (!options.on_reduced) {
      throw UsageError(named(Kind::reduce_scatter) + "a part of " + elements(input.local()) +
                       " has no output and no on_reduced: its result would be lost");
    }
    return;
  }
  require_plain(Kind::reduce_scatter, output);
  if (!widens) {
    require_block(Kind::reduce_scatter, input.local(), output, group);
    return;
  }
  require_block_size(Kind::reduce_scatter, input.local(), output.count, group);
  if (overlap(input.local(), output)) {
    throw UsageError(named(Kind::reduce_scatter) + "an f32 block of " + elements(input.local()) +
                     " overlaps its input: give it memory of its own");
  }
}

void require_root(Kind kind, int root, int ranks) {
  if (root < 0 || root >= ranks) {
    throw UsageError(named(kind) + "expected a root from 0 to " + std::to_string(ranks - 1) +
                     ", got " + std::to_string(root));
  }
}

void require_peer(Kind kind, int peer, const Communicator& group) {
  if (peer < 0 || peer >= group.size() || peer == group.rank()) {
    throw UsageError(named(kind) + "expected another rank of the " + std::to_string(group.size()) +
                     " in group '" + group.options().name + "', got " + std::to_string(peer) +
                     " on rank " + std::to_string(group.rank()));
  }
}

void require_whole(Kind kind, const Span& whole, const Span& block, int root,
                   const Communicator& group) {
  require_plain(kind, block);
  if (group.rank() == root) {
    require_plain(kind, whole);
    require_block(kind, whole, block, group);
    return;
  }
  if (whole.count < 0) {
    throw UsageError(named(kind) + "negative count " + std::to_string(whole.count));
  }
  require_same_dtype(kind, whole, block);
  require_block_size(kind, whole, block.count, group);
}

void require_exchange(const Span& input, const Span& output, const Communicator& group) {
  const Kind kind = Kind::all_to_all;
  require_plain(kind, input);
  require_plain(kind, output);
  const std::int64_t block = block_of(input.count, group.size(), group.rank()).size();
  if (output.dtype != input.dtype || output.count != group.size() * block) {
    throw UsageError(named(kind) + "rank " + std::to_string(group.rank()) + " receives " +
                     std::to_string(group.size()) + " blocks of " + std::to_string(block) +
                     " elements for an input of " + elements(input) + ", got an output of " +
                     elements(output));
  }
  if (overlap(input, output) && (input.data != output.data || input.count % group.size() != 0)) {
    throw UsageError(named(kind) +
                     "input and output overlap; they may be the same memory where the ranks divide "
                     "the elements, else give them memory of their own");
  }
}

void require_block(Kind kind, const Span& whole, const Span& block, const Communicator& group) {
  require_same_dtype(kind, whole, block);
  require_block_size(kind, whole, block.count, group);
  const Range range = block_of(whole.count, group.size(), group.rank());
  const auto* place =
      static_cast<const std::byte*>(whole.data) + range.begin * size_of(whole.dtype);
  if (overlap(whole, block) && block.data != place) {
    throw UsageError(named(kind) + "the block overlaps the whole, but not at its place (element " +
                     std::to_string(range.begin) + ")");
  }
}

Algorithm chosen_algorithm(Kind kind, Algorithm asked, bool shares_memory) {
  if (asked == Algorithm::native) {
    throw UsageError(named(kind) +
                     "algorithm native, the network's own, is not built yet; use auto");
  }
  if (asked == Algorithm::direct && !shares_memory) {
    throw UsageError(named(kind) +
                     "algorithm direct reads and writes memory that ranks share, and these talk "
                     "over the network; use auto");
  }
  if (asked != Algorithm::automatic) {
    return asked;
  }
  switch (kind) {
    case Kind::reduce:
    case Kind::all_to_all:
      return Algorithm::pairwise;
    case Kind::gather:
    case Kind::scatter:
      return Algorithm::coordinator;
    default:
      return shares_memory ? Algorithm::direct : Algorithm::pairwise;
  }
}

Fingerprint fingerprint_of(Kind kind, std::string_view name, Algorithm algorithm) {
  Fingerprint fingerprint;
  fingerprint.kind = kind;
  fingerprint.algorithm = algorithm;
  fingerprint.set_name(name);
  return fingerprint;
}

void add_reduction(Fingerprint& fingerprint, const ReduceOptions& options) {
  fingerprint.op = options.op;
  fingerprint.scaled = options.scale.has_value();
  fingerprint.scale_bits = std::bit_cast<std::uint64_t>(options.scale.value_or(0.0));
}

Fingerprint::Part part_of(const SymmetricSpan& span, std::optional<Dtype> round_to) {
  return {span.memory->id(), span.offset_bytes, span.count, span.dtype, round_to};
}

Fingerprint::Part part_of(const Span& span, std::optional<Dtype> round_to) {
  return {0, 0, span.count, span.dtype, round_to};
}

}  // namespace lockstep::comm
