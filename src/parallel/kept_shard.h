// A tensor of whose values this rank keeps only a part, as ShardedInit leaves a unit's parameters:
// it has its shape and type, and whatever reads it throws. The part hangs on its storage and goes
// with it.
#pragma once

#include "lockstep/group.h"

#include <torch/torch.h>

#include <string>

namespace lockstep::parallel {

struct KeptShard {
  int rank = 0;
  int ranks = 1;
  at::Tensor bytes = {};  // [block] u8: the rank-th of `ranks` equal blocks of the values' bytes
};

// A copy of that block, of a tensor that lies densely in CPU memory.
KeptShard shard_of(const at::Tensor& tensor, int rank, int ranks);

// Gives the tensor a storage that holds `shard` only; what shares the old one keeps it. Reading
// throws `why`.
void keep_only(at::Tensor& tensor, KeptShard shard, const std::string& why);

// What such a tensor keeps; nullptr for any other.
const KeptShard* kept_shard(const at::Tensor& tensor);

// Reading such a tensor throws another text from now on.
void explain(const at::Tensor& tensor, const std::string& why);

// Collective, on the ranks that keep its shards: all values, [the tensor's shape]. The tensor stays
// as it is.
at::Tensor gather_kept(const at::Tensor& tensor, Group& group, const std::string& name);

}  // namespace lockstep::parallel
