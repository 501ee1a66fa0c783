// Checks what a caller passes to a collective, before anything is posted, and puts it into the
// forms operations use. Every function throws UsageError naming the collective and the argument.
#pragma once

#include "comm/communicator.h"
#include "comm/direct.h"
#include "comm/reduction.h"

#include <string_view>

namespace lockstep::comm {

// Op, scale and rounding for elements of `dtype`.
Reduction reduction_of(const ReduceOptions& options, Dtype dtype, int ranks);
// round_to alone: of a part.
void require_rounding(std::optional<Dtype> round_to, Dtype dtype);
void require_plain(Kind kind, const Span& span);
void require_no_callback(Kind kind, const ReduceOptions& options);
// The span lies in memory of this group.
void require_symmetric(Kind kind, const SymmetricSpan& span, const Communicator& group);
// Of a coalesced collective.
void require_parts(Kind kind, std::size_t parts, const ReduceOptions& options);
// The output, dtype and rounding of one of its parts.
void require_scattered(const ScatterPart& part, const ReduceOptions& options,
                       const Communicator& group);
// The sizes of all_to_all, and that its spans are the same or apart.
void require_exchange(const Span& input, const Span& output, const Communicator& group);
void require_root(Kind kind, int root, int ranks);
// Of send and recv: another rank of the group.
void require_peer(Kind kind, int peer, const Communicator& group);
// Of gather and scatter, where only root has a whole.
void require_whole(Kind kind, const Span& whole, const Span& block, int root,
                   const Communicator& group);
// `block` is this rank's block of `whole`, either at its place in it or apart from it.
void require_block(Kind kind, const Span& whole, const Span& block, const Communicator& group);

// What is asked for, or what automatic means among ranks that do or don't share memory. Throws for
// what they can't use.
Algorithm chosen_algorithm(Kind kind, Algorithm asked, bool shares_memory);

Fingerprint fingerprint_of(Kind kind, std::string_view name,
                           Algorithm algorithm = Algorithm::direct);
void add_reduction(Fingerprint& fingerprint, const ReduceOptions& options);
Fingerprint::Part part_of(const SymmetricSpan& span, std::optional<Dtype> round_to = {});
Fingerprint::Part part_of(const Span& span, std::optional<Dtype> round_to = {});

}  // namespace lockstep::comm
