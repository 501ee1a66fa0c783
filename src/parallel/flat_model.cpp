#include "parallel/flat_model.h"

#include "base/bucket_plan.h"
#include "comm/together.h"
#include "parallel/kept_shard.h"
#include "parallel/parameters.h"
#include "parallel/units.h"

#include <algorithm>
#include <malloc.h>
#include <map>
#include <sstream>
#include <utility>

namespace lockstep::parallel {
namespace {

std::string bucket_name(std::size_t number, const std::vector<NamedParameter>& members) {
  std::string name = "bucket " + std::to_string(number) + ": " + members.front().name;
  if (members.size() > 1) {
    name += " +" + std::to_string(members.size() - 1);
  }
  return name;
}

// The frozen parameters and buffers, which are sent as they are.
std::vector<at::Tensor> untrained_tensors(const torch::nn::Module& module) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.defined() && !parameter.requires_grad()) {
      tensors.push_back(parameter);
    }
  }
  for (const at::Tensor& buffer : module.buffers()) {
    if (buffer.defined()) {
      tensors.push_back(buffer);
    }
  }
  return tensors;
}

// What ShardedInit left in shards. Throws UsageError, on all ranks, for another group's.
std::vector<at::Tensor> kept_in_shards(const torch::nn::Module& module, Group& group) {
  std::vector<at::Tensor> tensors;
  std::string wrong;
  for (const auto& item : module.named_parameters()) {
    const KeptShard* const shard = kept_shard(item.value());
    if (shard == nullptr) {
      continue;
    }
    tensors.push_back(item.value());
    if (shard->ranks != group.size() || shard->rank != group.rank()) {
      wrong = "parameter '" + item.key() + "' was made by a ShardedInit as shard " +
              std::to_string(shard->rank) + " of " + std::to_string(shard->ranks) +
              ", the Parallel has rank " + std::to_string(group.rank()) + " of " +
              std::to_string(group.size()) + "; give both the same group";
    }
  }
  if (!tensors.empty()) {
    comm::do_together(group, "shards of ShardedInit",
                      [&] { return wrong.empty() ? std::string() : throw UsageError(wrong); });
  }
  return tensors;
}

}  // namespace

FlatModel::FlatModel(std::shared_ptr<torch::nn::Module> module, Group& group,
                     const ParallelOptions& options, Device& device)
    : module_(std::move(module)) {
  const torch::NoGradGuard no_grad;
  verify_equal_lists(group, describe(*module_), "parameters and buffers");
  auto parts = plan(trainable_parameters(*module_, options.precision), options);
  for (at::Tensor& tensor : kept_in_shards(*module_, group)) {
    if (!tensor.requires_grad() && kept_shard(tensor) != nullptr) {  // a tied one comes twice
      tensor.set_data(gather_kept(tensor, group, "frozen values"));
    }
  }
  for (at::Tensor& tensor : untrained_tensors(*module_)) {
    broadcast_values(group, tensor, "initial values");
  }
  convert_frozen(*module_, options.precision);
  attach(std::move(parts), options, group, device);
  listed_ = floating_parameters(*module_, options.precision);
  number_trained();
}

std::vector<std::vector<std::size_t>> FlatModel::members_of_buckets(
    const std::vector<NamedParameter>& parameters, const ParallelOptions& options) const {
  if (options.stage == Stage::zero3) {
    std::vector<at::Tensor> tensors;
    for (const NamedParameter& parameter : parameters) {
      tensors.push_back(parameter.tensor);
    }
    return plan_units(units_of(*module_, tensors), options.unit_blocks);
  }
  std::vector<std::int64_t> bytes;
  for (const NamedParameter& parameter : parameters) {
    bytes.push_back(parameter.tensor.numel() * size_of(dtype_of(parameter.held_as)));
  }
  return plan_buckets(bytes, bucket_sizes_of(options.bucket_mb));
}

std::vector<std::vector<NamedParameter>> FlatModel::plan(std::vector<NamedParameter> parameters,
                                                         const ParallelOptions& options) {
  std::vector<std::vector<NamedParameter>> parts;
  for (const auto& members : members_of_buckets(parameters, options)) {
    std::map<Dtype, std::vector<NamedParameter>> by_dtype;
    std::vector<NamedParameter> all;
    for (const std::size_t i : members) {
      by_dtype[dtype_of(parameters[i].held_as)].push_back(parameters[i]);
      all.push_back(parameters[i]);
    }
    Bucket& bucket = buckets_.emplace_back();
    bucket.name = bucket_name(buckets_.size() - 1, all);
    for (auto& [dtype, part] : by_dtype) {
      bucket.parts.push_back(parts_.size() + parts.size());
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

// Updated shards are written where forward reads the values, without a copy: into each rank's own,
// or into the one that all ranks of the host read.
std::vector<Spread> FlatModel::spread(const std::vector<std::vector<NamedParameter>>& parts,
                                      const ParallelOptions& options, Group& group) {
  std::vector<Spread> spreads(parts.size(), Spread{.ranks = group.size()});
  if (!updates_shards(options.stage, options.share_parameters)) {
    return spreads;
  }
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> counts;
  std::int64_t bytes = 0;
  for (const std::vector<NamedParameter>& members : parts) {
    offsets.push_back(bytes);
    counts.push_back(FlatParameter::layout_of(members, group.size()).size());
    bytes += counts.back() * size_of(dtype_of(members.at(0).held_as));
  }
  const bool one_copy = shares_parameters(options.stage, options.share_parameters);
  const HostMemory host = one_copy ? group.allocate_host(bytes, "parameters") : HostMemory();
  const SymmetricMemory memory =
      one_copy ? SymmetricMemory() : group.allocate_symmetric(bytes, "parameters");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    spreads[i].shard = group.rank();
    if (one_copy) {
      spreads[i].host_values = host;
      spreads[i].host_offset = offsets[i];
    } else {
      spreads[i].values = memory.span(offsets[i], counts[i], dtype_of(parts[i].at(0).held_as));
    }
  }
  return spreads;
}

void FlatModel::attach(std::vector<std::vector<NamedParameter>> parts,
                       const ParallelOptions& options, Group& group, Device& device) {
  const std::vector<Spread> spreads = spread(parts, options, group);
  for (std::size_t n = 0; n < parts.size(); ++n) {
    owned_.push_back(std::make_unique<FlatParameter>(device, std::move(parts[n]), spreads[n]));
    FlatParameter* const part = parts_.emplace_back(owned_.back().get());
    share_initial_values(*part, group);
    part->attach_members(device);
    for (std::size_t i = 0; i < part->members(); ++i) {
      tensors_.push_back(part->member(i).tensor);
      places_.push_back({parts_.size() - 1, i});
    }
  }
  ::malloc_trim(0);  // what the module's own tensors took would stay with the process
  if (shares_parameters(options.stage, options.share_parameters)) {
    guard_writes(options.stage);
    group.barrier({.name = "initial values are written"});
  }
}

// Shards are rank 0's values already.
void FlatModel::share_initial_values(FlatParameter& part, Group& group) {
  std::vector<std::size_t> in_shards;
  for (std::size_t i = 0; i < part.members(); ++i) {
    if (kept_shard(part.member(i).tensor) != nullptr) {
      in_shards.push_back(i);
    }
  }
  if (group.size() > 1 && in_shards.size() < part.members()) {
    group.broadcast(part.initial_values(), 0, {.name = "initial values"}).wait();
  }
  for (const std::size_t i : in_shards) {
    const NamedParameter& member = part.member(i);
    part.initialise(i, gather_kept(member.tensor, group, member.name));
  }
}

// A program that writes to a parameter, as it may elsewhere, gets a line instead of a bare fault.
void FlatModel::guard_writes(Stage stage) {
  std::vector<WriteGuard::Entry> entries;
  for (const FlatParameter* part : parts_) {
    for (std::size_t i = 0; i < part->members(); ++i) {
      const std::span<const std::byte> bytes = part->bytes_of(i);
      entries.push_back({bytes.data(), bytes.data() + bytes.size(),
                         "lockstep: parameter '" + part->member(i).name + "' was written to: " +
                             (stage == Stage::zero3 ? "in zero3" : "with share_parameters") +
                             " the ranks of a host share one copy, for reading; use "
                             "Parallel::set_parameter()\n"});
    }
  }
  guard_ = std::make_unique<WriteGuard>(std::move(entries));
}

void FlatModel::number_trained() {
  trained_.clear();
  for (const NamedParameter& parameter : listed_) {
    trained_.push_back(number_of(parameter.tensor));
  }
}

std::optional<std::size_t> FlatModel::number_of(const std::string& name) const {
  const auto named = module_->named_parameters();
  const at::Tensor* const parameter = named.find(name);
  return parameter == nullptr ? std::nullopt : number_of(*parameter);
}

std::optional<std::size_t> FlatModel::number_of(const at::Tensor& parameter) const {
  const auto found = std::ranges::find_if(
      tensors_, [&](const at::Tensor& tensor) { return tensor.is_same(parameter); });
  return found == tensors_.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(found - tensors_.begin()));
}

std::vector<std::size_t> FlatModel::unfrozen() const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < listed_.size(); ++i) {
    if (listed_[i].tensor.requires_grad() && !trained(i)) {
      result.push_back(i);
    }
  }
  return result;
}

void FlatModel::add(const std::vector<std::size_t>& unfrozen, Group& group,
                    const ParallelOptions& options, Device& device) {
  const torch::NoGradGuard no_grad;
  std::vector<NamedParameter> parameters;
  std::vector<std::string> names;
  for (const std::size_t i : unfrozen) {
    parameters.push_back(listed_.at(i));
    names.push_back(listed_[i].name);
  }
  verify_equal_lists(group, names, "unfrozen parameters");
  attach(plan(std::move(parameters), options), options, group, device);
  number_trained();
}

at::Tensor FlatModel::parameter(const std::string& name) const {
  for (const auto& item : module_->named_parameters()) {
    if (item.key() == name) {
      return item.value();
    }
  }
  throw UsageError("no parameter named '" + name + "' in the module");
}

at::Tensor FlatModel::full_precision(const std::string& name, Group& group) const {
  const at::Tensor parameter = this->parameter(name);
  if (const auto number = number_of(parameter)) {
    const auto [part, member] = place(*number);
    return parts_[part]->full_precision(member, group);
  }
  const bool is_double = parameter.scalar_type() == torch::kFloat64;
  return parameter.detach().to(is_double ? torch::kFloat64 : torch::kFloat32);
}

void FlatModel::visit_full_precision(const std::string& name, Group& group,
                                     const FlatParameter::VisitPiece& visit) const {
  if (const auto number = number_of(name)) {
    const auto [part, member] = place(*number);
    parts_[part]->visit_full_precision(member, group, visit);
    return;
  }
  visit(full_precision(name, group).contiguous().view({-1}));
}

void FlatModel::set_full_precision(const std::string& name, const at::Tensor& values,
                                   Device& device) {
  at::Tensor parameter = this->parameter(name);
  if (values.sizes() != parameter.sizes()) {
    std::ostringstream text;
    text << "parameter '" << name << "': expected values of shape " << parameter.sizes() << ", got "
         << values.sizes();
    throw UsageError(text.str());
  }
  if (const auto number = number_of(parameter)) {
    const auto [part, member] = place(*number);
    parts_[part]->set_full_precision(member, values, device);
    return;
  }
  parameter.detach().copy_(values);  // a frozen one
}

void FlatModel::with_full_precision(const std::function<void()>& body, FullParameters access,
                                    Group& group, Device& device) {
  if (shows_full_precision_) {
    throw UsageError(
        "with_full_parameters() inside with_full_parameters(): end the outer one first");
  }
  const bool writes = access == FullParameters::write;
  try {
    show_full_precision(writes, group);
    const std::vector<std::int64_t> before = versions();
    comm::do_together(group, "with_full_parameters", [&] {
      body();
      if (!writes) {
        check_unwritten(before);
      }
      return std::string();
    });
    if (writes) {
      const torch::NoGradGuard no_grad;
      for (FlatParameter* part : parts_) {
        part->take_shown(device);
      }
    }
  } catch (...) {
    show_held();
    throw;
  }
  show_held();
}

void FlatModel::show_full_precision(bool to_write, Group& group) {
  const torch::NoGradGuard no_grad;
  shows_full_precision_ = true;
  for (FlatParameter* part : parts_) {
    part->show_full_precision(to_write, group);
  }
}

void FlatModel::show_held() {
  const torch::NoGradGuard no_grad;
  for (FlatParameter* part : parts_) {
    part->show_held();
  }
  shows_full_precision_ = false;
}

std::vector<std::int64_t> FlatModel::versions() const {
  std::vector<std::int64_t> versions;
  for (const at::Tensor& tensor : tensors_) {
    versions.push_back(tensor._version());
  }
  return versions;
}

void FlatModel::check_unwritten(const std::vector<std::int64_t>& versions) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i]._version() != versions[i]) {
      const auto [part, member] = places_[i];
      throw UsageError("parameter '" + parts_[part]->member(member).name +
                       "' was written to in with_full_parameters() for reading; give it "
                       "FullParameters::write");
    }
  }
}

void FlatModel::check_unchanged() const {
  const std::vector<NamedParameter> now = floating_parameters(*module_, {});
  for (std::size_t i = 0; i < std::max(now.size(), listed_.size()); ++i) {
    const bool same = i < now.size() && i < listed_.size() &&
                      now[i].tensor.is_same(listed_[i].tensor) && now[i].name == listed_[i].name;
    if (!same) {
      throw UsageError("parameter '" + (i < now.size() ? now : listed_)[i].name +
                       "' was replaced, added or removed after Parallel was made; write into the "
                       "parameter instead, or change the module before making the Parallel");
    }
  }
  for (const FlatParameter* part : parts_) {
    part->check_attached();
  }
}

std::int64_t FlatModel::parameter_bytes() const {
  std::int64_t bytes = 0;
  for (const FlatParameter* part : parts_) {
    bytes += part->parameter_bytes();
  }
  for (const at::Tensor& parameter : module_->parameters()) {
    bytes += number_of(parameter) ? 0 : static_cast<std::int64_t>(parameter.nbytes());
  }
  return bytes;
}

std::int64_t FlatModel::master_bytes() const {
  std::int64_t bytes = 0;
  for (const FlatParameter* part : parts_) {
    bytes += part->master_bytes();
  }
  return bytes;
}

}  // namespace lockstep::parallel
