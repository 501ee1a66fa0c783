#include "lockstep/checkpoint.h"

#include "base/range.h"
#include "checkpoint/publication.h"
#include "checkpoint/saved_step.h"
#include "comm/together.h"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

using checkpoint::FileEntry;
using checkpoint::Manifest;
using checkpoint::NamedTensor;
using checkpoint::SavedArrays;
using checkpoint::SavedStep;
using checkpoint::StateArray;
using nlohmann::json;

struct TorchDtype {
  torch::Dtype torch;
  Dtype ours;
};
// A bool is a byte.
constexpr TorchDtype kDtypes[] = {{torch::kFloat32, Dtype::f32},   {torch::kFloat64, Dtype::f64},
                                  {torch::kBFloat16, Dtype::bf16}, {torch::kFloat16, Dtype::f16},
                                  {torch::kInt32, Dtype::i32},     {torch::kInt64, Dtype::i64},
                                  {torch::kUInt8, Dtype::u8},      {torch::kBool, Dtype::u8}};

StateArray array_of(std::string_view slot, const std::string& name, const torch::Tensor& tensor,
                    torch::IntArrayRef shape) {
  for (const TorchDtype& dtype : kDtypes) {
    if (dtype.torch == tensor.scalar_type()) {
      return {std::string(slot), name, dtype.ours, shape.vec()};
    }
  }
  throw UsageError("checkpoint: " + StateArray{.slot = std::string(slot), .name = name}.title() +
                   " has dtype " + c10::toString(tensor.scalar_type()) +
                   "; expected a real floating-point type, int, long, uint8 or bool");
}

// Parameters once each, a tied one under its first name.
using Parameters = std::vector<std::pair<std::string, torch::Tensor>>;
Parameters parameters_of(const torch::nn::Module& module) {
  Parameters parameters;
  std::set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second) {
      parameters.emplace_back(item.key(), item.value());
    }
  }
  return parameters;
}

// One array of the state and the tensor that holds it now; of parameters it may be a copy.
struct Held {
  StateArray array;
  torch::Tensor tensor;
  std::optional<Range> shard = {};  // its elements, where every rank holds others
};

// What is saved of the parameters: the elements that this rank keeps, in full precision.
std::vector<Held> kept_parameters(const Parallel& parallel) {
  std::vector<Held> parameters;
  for (const auto& [name, tensor] : parameters_of(parallel.module())) {
    const LocalParameter local = parallel.local_parameter(name);
    Held& held = parameters.emplace_back();
    held.array = array_of(checkpoint::kParameterSlot, name, local.values, tensor.sizes());
    held.tensor = local.values.detach();
    if (!local.everywhere) {
      held.shard = Range{local.begin, local.end};
    }
  }
  return parameters;
}

// What is loaded: all elements of each, on every rank.
std::vector<Held> whole_parameters(const Parallel& parallel) {
  std::vector<Held> parameters;
  for (const auto& [name, tensor] : parameters_of(parallel.module())) {
    const bool is_double = tensor.scalar_type() == torch::kFloat64;
    const torch::Tensor whole =
        torch::empty(tensor.sizes(), is_double ? torch::kFloat64 : torch::kFloat32);
    parameters.push_back({array_of(checkpoint::kParameterSlot, name, whole, whole.sizes()), whole});
  }
  return parameters;
}

std::vector<Held> state_of(const Parallel& parallel, const OptimizerState& optimizer,
                           std::vector<Held> state_of_parameters) {
  std::vector<Held> state = std::move(state_of_parameters);
  for (const auto& item : parallel.module().named_buffers()) {
    const torch::Tensor& buffer = item.value();
    if (buffer.defined()) {
      state.push_back(
          {array_of(checkpoint::kBufferSlot, item.key(), buffer, buffer.sizes()), buffer});
    }
  }
  const Parameters parameters = parameters_of(parallel.module());
  for (const std::string& slot : optimizer.slots()) {
    for (const auto& [name, tensor] : parameters) {
      if (tensor.requires_grad()) {
        const torch::Tensor elements = optimizer.elements(slot, name);
        Held& held = state.emplace_back();
        held = {array_of(slot, name, elements, tensor.sizes()), elements};
        if (optimizer.sharded()) {
          const auto [begin, end] = optimizer.kept(name);
          held.shard = Range{begin, end};
        }
      }
    }
  }
  return state;
}

bool is_of_model(const StateArray& array) {
  return array.slot == checkpoint::kParameterSlot || array.slot == checkpoint::kBufferSlot;
}

// What this rank writes of each array: its shard, or of what all ranks hold an equal block without
// cutting a granule, so that all write about as much. Buffers may differ between ranks; rank 0's
// are saved.
Range part_of(const Held& held, const Group& group) {
  const StateArray& array = held.array;
  if (held.shard) {
    return *held.shard;
  }
  if (array.slot == checkpoint::kBufferSlot) {
    return {0, group.rank() == 0 ? array.count() : 0};
  }
  return block_of(array.count(), group.size(), group.rank(), kGranule);
}

std::vector<NamedTensor> share_of(const std::vector<Held>& state, const Group& group,
                                  bool of_model) {
  std::vector<NamedTensor> share;
  for (const Held& held : state) {
    const Range part = part_of(held, group);
    if (is_of_model(held.array) != of_model || part.empty()) {
      continue;
    }
    const auto* bytes = static_cast<const std::byte*>(held.tensor.const_data_ptr());
    share.push_back({text_of(checkpoint::Piece{held.array.slot, held.array.name, part}),
                     held.array.dtype,
                     {part.size()},
                     bytes + (held.shard ? 0 : part.begin) * size_of(held.array.dtype)});
  }
  return share;
}

std::string file_name(const char* what, const Group& group) {
  const auto number = [](int n) {
    const std::string digits = std::to_string(n);
    return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
  };
  return std::string(what) + "-" + number(group.rank() + 1) + "-of-" + number(group.size()) +
         ".safetensors";
}

// Writes this rank's files; their entries as JSON, for the others.
std::string write_files(checkpoint::FileSystem& files, const std::string& unfinished,
                        const std::vector<Held>& state, const Group& group) {
  json entries = json::array();
  for (const bool of_model : {true, false}) {
    std::vector<NamedTensor> share = share_of(state, group, of_model);
    if (!share.empty()) {
      const FileEntry entry = write_share(
          files, unfinished, file_name(of_model ? "model" : "optimizer", group), std::move(share));
      entries.push_back({entry.name, entry.bytes, entry.hash});
    }
  }
  return entries.dump();
}

std::vector<FileEntry> entries_of(const std::vector<std::string>& texts) {
  std::vector<FileEntry> entries;
  for (const std::string& text : texts) {
    for (const json& entry : json::parse(text)) {
      entries.push_back({entry[0], entry[1], entry[2]});
    }
  }
  return entries;
}

Manifest manifest_of(const Parallel& parallel, const OptimizerState& optimizer,
                     const std::vector<Held>& state, const std::string& user) {
  Manifest manifest;
  manifest.step = parallel.steps();
  manifest.optimizer = optimizer.kind();
  manifest.user = user;
  for (const Held& held : state) {
    manifest.arrays.push_back(held.array);
  }
  for (const auto& [name, tensor] : parameters_of(parallel.module())) {
    if (tensor.requires_grad()) {
      manifest.optimizer_steps.emplace(name, optimizer.updates(name));
    }
  }
  return manifest;
}

void check_fits(const SavedStep& step, const std::vector<Held>& state,
                const OptimizerState& optimizer) {
  if (step.manifest().optimizer != optimizer.kind()) {
    throw UsageError(step.path() + ": was saved with optimizer " + step.manifest().optimizer +
                     ", got " + optimizer.kind() + "; use the one it was saved with");
  }
  std::vector<StateArray> arrays;
  for (const Held& held : state) {
    arrays.push_back(held.array);
  }
  step.check_holds(arrays);
  for (const auto& [name, updates] : step.manifest().optimizer_steps) {
    optimizer.updates(name);  // throws for a parameter that is not trained here
  }
}

torch::Tensor read_tensor(const SavedArrays& saved, const Held& held) {
  torch::Tensor values = torch::empty(held.tensor.sizes(), held.tensor.scalar_type());
  saved.read(held.array, held.shard.value_or(Range{0, held.array.count()}),
             values.mutable_data_ptr());
  return values;
}

void restore(const SavedArrays& saved, const std::vector<Held>& state, Parallel& parallel) {
  const torch::NoGradGuard no_grad;
  for (const Held& held : state) {
    const torch::Tensor values = read_tensor(saved, held);
    if (held.array.slot == checkpoint::kParameterSlot) {
      parallel.set_parameter(held.array.name, values);
    } else {
      held.tensor.detach().copy_(values);
    }
  }
}

}  // namespace

std::string save_checkpoint(const std::string& folder, const Parallel& parallel,
                            const OptimizerState& optimizer, const SaveOptions& options) {
  const torch::NoGradGuard no_grad;
  checkpoint::Disk disk;
  Group& group = parallel.group();
  const std::int64_t step = parallel.steps();
  std::optional<checkpoint::Publication> publication;  // rank 0 holds it
  std::vector<Held> state;
  comm::do_together(group, "begin checkpoint", [&] {
    checkpoint::check_user_text(options.user);
    state = state_of(parallel, optimizer, kept_parameters(parallel));
    for (Held& held : state) {
      held.tensor = held.tensor.contiguous();
    }
    if (group.rank() == 0) {
      publication.emplace(disk, folder, step);
    }
    return std::string();
  });
  const auto written = comm::do_together(group, "write checkpoint", [&] {
    return write_files(disk, checkpoint::unfinished_path(folder, step), state, group);
  });
  return comm::do_together(group, "publish checkpoint",
                           [&] {
                             if (!publication) {
                               return std::string();
                             }
                             Manifest manifest =
                                 manifest_of(parallel, optimizer, state, options.user);
                             manifest.files = entries_of(written);
                             std::string path = publication->publish(manifest);
                             if (options.keep > 0) {
                               publication->keep_newest(options.keep);
                             }
                             return path;
                           })
      .front();
}

std::optional<std::string> latest_checkpoint(const std::string& folder) {
  const std::vector<std::int64_t> steps = checkpoint::saved_steps(folder);
  if (steps.empty()) {
    return std::nullopt;
  }
  return folder + "/" + checkpoint::step_folder_name(steps.back());
}

LoadedCheckpoint load_checkpoint(const std::string& path, Parallel& parallel,
                                 OptimizerState& optimizer) {
  Group& group = parallel.group();
  const std::vector<Held> state = state_of(parallel, optimizer, whole_parameters(parallel));
  std::optional<SavedStep> step;
  std::optional<SavedArrays> saved;
  comm::do_together(group, "verify checkpoint", [&] {
    step.emplace(path);
    check_fits(*step, state, optimizer);
    step->verify(group.rank(), group.size());
    return std::string();
  });
  comm::do_together(group, "open checkpoint", [&] {
    saved.emplace(*step);
    return std::string();
  });
  parallel.resume_at(step->manifest().step);
  restore(*saved, state, parallel);
  for (const auto& [name, updates] : step->manifest().optimizer_steps) {
    optimizer.set_updates(name, updates);
  }
  return {step->manifest().step, step->manifest().user};
}

}  // namespace lockstep
