#include "lockstep/sharded_init.h"

#include "lockstep/unit.h"
#include "parallel/kept_shard.h"
#include "parallel/parameters.h"

#include <malloc.h>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// A unit is made without being told for whom; another thread makes another model.
thread_local ShardedInit* innermost = nullptr;

struct Owned {
  std::string name;  // in the unit
  at::Tensor tensor;
};

// Module::named_parameters() wants a shared_ptr, which a module in its constructor has not.
void add_parameters(const torch::nn::Module& module, const std::string& prefix,
                    std::vector<Owned>& parameters) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const bool dense = item.value().defined() && item.value().layout() == at::kStrided;
    if (dense && item.value().is_cpu()) {
      parameters.push_back({prefix + item.key(), item.value()});
    }
  }
  for (const auto& child : module.named_children()) {
    add_parameters(*child.value(), prefix + child.key() + ".", parameters);
  }
}

std::string why_freed(const std::string& parameter, const std::string& unit) {
  return "parameter '" + parameter + "' of " + unit +
         " is spread over the ranks by ShardedInit: set its values in the unit's own constructor, "
         "and read them when a Parallel has been made of the module (Parallel::full_parameter(), "
         "set_parameter())";
}

}  // namespace

ShardedInit::ShardedInit(Group& group, const ParallelOptions& options)
    : group_(group),
      shards_(shares_parameters(options.stage, options.share_parameters)),
      outer_(std::exchange(innermost, this)) {}

ShardedInit::~ShardedInit() { innermost = outer_; }

void ShardedInit::keep_shards(const torch::nn::Module& unit) {
  const torch::NoGradGuard no_grad;
  const std::string name = "unit " + std::to_string(units_++) + " (" + unit.name() + ")";
  std::vector<Owned> parameters;
  add_parameters(unit, "", parameters);
  std::vector<parallel::KeptShard> shards;
  // All are copied before the first is freed: they may share memory.
  for (Owned& one : parameters) {
    if (parallel::kept_shard(one.tensor) == nullptr) {
      parallel::broadcast_values(group_, one.tensor, "initial " + one.name + " of " + name);
      shards.push_back(parallel::shard_of(one.tensor, group_.rank(), group_.size()));
    } else {
      shards.emplace_back();
    }
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parallel::kept_shard(parameters[i].tensor) == nullptr) {
      parallel::keep_only(parameters[i].tensor, std::move(shards[i]),
                          why_freed(parameters[i].name, name));
    } else {
      // Of a unit in this one, whose name for it says more.
      parallel::explain(parameters[i].tensor, why_freed(parameters[i].name, name));
    }
  }
  ::malloc_trim(0);  // or what was freed would stay with the process
}

void parallel::unit_made(torch::nn::Module& unit) {
  if (innermost != nullptr && innermost->shards_) {
    innermost->keep_shards(unit);
  }
}

}  // namespace lockstep
