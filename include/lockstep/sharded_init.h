// Builds a model whose full weights do not fit once per rank.
//
//   lockstep::Unit<GPT> model = [&] {
//     const lockstep::ShardedInit init(world, options);  // those of the Parallel to come
//     return lockstep::Unit<GPT>(config);
//   }();
//   lockstep::Parallel parallel(model, world, options);
//
// While it lives every Unit (unit.h) that this thread makes draws its parameters as always; when
// the module's own constructor has ended it takes rank 0's values, keeps a P-th of them and frees
// the rest. So a rank holds one whole unit at a time, and Parallel begins with the same bits as
// without. It does so where the ranks of a host hold one copy of the parameters (zero3, or
// share_parameters); elsewhere each rank keeps all of them anyway, and it does nothing.
//
// Between a unit's constructor and Parallel:
//   - a freed parameter keeps its shape, dtype and requires_grad, may be frozen, tied to another
//     module or replaced; whatever reads or writes its values (forward, clone(), save, to(), the
//     constructor of a module around it) throws c10::Error with the parameter's and the unit's
//     name: a unit's values are set in its own constructor
//   - it stays freed when the scope ends, and its part goes with its last tensor: only a Parallel
//   on
//     the same ranks makes it whole, for its own purposes. It gathers the parts piece by piece
//   - a unit in another is freed first; the outer one then frees what is its own
//   - parameters outside of all units, buffers, and copies made by clone() stay whole
//   - a unit whose constructor throws leaves nothing behind; its inner ones go as any module does
//
// Collective: all ranks make the same units in the same order (else Mismatch on all of them). A
// rank whose constructor throws alone must leave: the others wait for it as in any collective.
// `group` must outlive the scope. Scopes nest; the innermost counts.
#pragma once

#include "lockstep/group.h"
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <cstdint>

namespace lockstep {

namespace parallel {
void unit_made(torch::nn::Module& unit);
}

class [[nodiscard]] ShardedInit {
 public:
  ShardedInit(Group& group, const ParallelOptions& options);
  ~ShardedInit();
  ShardedInit(const ShardedInit&) = delete;
  ShardedInit& operator=(const ShardedInit&) = delete;

 private:
  friend void parallel::unit_made(torch::nn::Module& unit);
  void keep_shards(const torch::nn::Module& unit);

  Group& group_;
  bool shards_;
  std::int64_t units_ = 0;  // made so far
  ShardedInit* outer_;
};

}  // namespace lockstep
