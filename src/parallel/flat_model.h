// A module whose trainable parameters lie in flat memory, bucket by bucket, with the same values on
// all ranks.
#pragma once

#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "parallel/collector.h"
#include "parallel/device.h"
#include "parallel/flat_parameter.h"
#include "parallel/write_guard.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::parallel {

class FlatModel {
 public:
  // Collective. Verifies that all ranks have the same parameters, plans the buckets, broadcasts
  // rank 0's values and buffers, and points the module's tensors into flat memory.
  FlatModel(std::shared_ptr<torch::nn::Module> module, Group& group, const ParallelOptions& options,
            Device& device);

  const std::vector<FlatParameter*>& parts() const { return parts_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // All trainable parameters, through parts and members in order.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  Place place(std::size_t parameter) const { return places_.at(parameter); }

  // The module's floating-point parameters when it was wrapped, frozen ones included, in
  // registration order.
  const std::vector<NamedParameter>& listed() const { return listed_; }
  // The number that a parameter has among tensors(), by any name of a tied one; none for one that
  // is not trained or not there.
  std::optional<std::size_t> number_of(const std::string& name) const;
  std::optional<std::size_t> number_of(const at::Tensor& parameter) const;
  // The number that listed()[i] has among tensors(); none while it was never trained.
  std::optional<std::size_t> trained(std::size_t i) const { return trained_.at(i); }
  // Those of listed() that are trained by now but have no place in flat memory.
  std::vector<std::size_t> unfrozen() const;
  // Collective. Gives them one, in buckets behind the others, with rank 0's values; nothing else
  // moves.
  void add(const std::vector<std::size_t>& unfrozen, Group& group, const ParallelOptions& options,
           Device& device);

  // The fp32 (fp64) value of any parameter, frozen ones included. Collective where masters are
  // sharded. Throws UsageError for an unknown name.
  at::Tensor full_precision(const std::string& name, Group& group) const;
  // The same in 1-D pieces, in order.
  void visit_full_precision(const std::string& name, Group& group,
                            const FlatParameter::VisitPiece& visit) const;
  // Throws UsageError naming a parameter that was replaced, or whose storage was, or that is new.
  void check_unchanged() const;
  // Sets it; what the module holds is the values' rounding. Throws UsageError for an unknown name
  // or another shape.
  void set_full_precision(const std::string& name, const at::Tensor& values, Device& device);
  // Collective: calls `body` while all trained parameters show their values in full precision;
  // with FullParameters::write what it left in them is kept. When it throws on some rank nothing
  // is, and all ranks throw.
  void with_full_precision(const std::function<void()>& body, FullParameters access, Group& group,
                           Device& device);
  torch::nn::Module& module() const { return *module_; }

  std::int64_t parameter_bytes() const;  // frozen ones included
  std::int64_t master_bytes() const;

 private:
  std::vector<std::vector<std::size_t>> members_of_buckets(
      const std::vector<NamedParameter>& parameters, const ParallelOptions& options) const;
  // The members of each further flat parameter, and the buckets that they form.
  std::vector<std::vector<NamedParameter>> plan(std::vector<NamedParameter> parameters,
                                                const ParallelOptions& options);
  // Collective: makes them, with rank 0's values.
  void attach(std::vector<std::vector<NamedParameter>> parts, const ParallelOptions& options,
              Group& group, Device& device);
  // Collective: rank 0's values, also of what ShardedInit left in shards.
  static void share_initial_values(FlatParameter& part, Group& group);
  static std::vector<Spread> spread(const std::vector<std::vector<NamedParameter>>& parts,
                                    const ParallelOptions& options, Group& group);
  void guard_writes(Stage stage);
  void show_full_precision(bool to_write, Group& group);
  void show_held();
  void check_unwritten(const std::vector<std::int64_t>& versions) const;
  std::vector<std::int64_t> versions() const;
  void number_trained();
  at::Tensor parameter(const std::string& name) const;

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<std::unique_ptr<FlatParameter>> owned_;
  std::unique_ptr<WriteGuard> guard_;  // where the values are for reading
  std::vector<FlatParameter*> parts_;
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> tensors_;
  std::vector<Place> places_;  // per tensor
  std::vector<NamedParameter> listed_;
  std::vector<std::optional<std::size_t>> trained_;  // per listed
  bool shows_full_precision_ = false;
};

}  // namespace lockstep::parallel
