// What a Parallel holds: the life cycle of a step, from the first gradient to the update. The parts
// do the work: parameters in flat memory, the collector, the stage's exchange, the decision.
#pragma once

#include "lockstep/parallel.h"
#include "parallel/buffers.h"
#include "parallel/collector.h"
#include "parallel/flat_model.h"
#include "parallel/gradient_hooks.h"
#include "parallel/mean_gradient.h"
#include "parallel/recomputing_units.h"
#include "parallel/resident_units.h"
#include "parallel/stopwatch.h"
#include "parallel/updated_values.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::parallel {

// Where clip_grad_norm() multiplies: as the optimizer updates, or .grad itself.
enum class Clipping : std::uint8_t { fused, in_place };

class Engine {
 public:
  Engine(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options,
         std::unique_ptr<Device> device);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // micro_steps: a step of k leaves on each rank; the gradient is their sum over `total_weight`,
  // which is P·k for the mean over leaves.
  MicroStep begin_micro_steps(std::int64_t k, std::int64_t total_weight);
  MicroStep next_micro_step(MicroStep previous, std::int64_t k);

  // no_sync: leaves add up, the mean is over ranks only.
  void enter_no_sync();
  void leave_no_sync() noexcept;

  // Completes an unfinished exchange.
  void synchronise();
  // Forgets what was collected or exchanged and clears .grad.
  void discard();

  double clip_grad_norm(double max_norm);
  double grad_norm();
  double mean_loss(std::span<const double> losses, std::int64_t total_weight);
  // Collective: of this step's leaves on all ranks.
  std::int64_t total_weight(std::span<const std::int64_t> weights);

  // An optimizer's step: calls `closure`, if any, with gradients enabled; completes the exchange;
  // calls `update` with gradients disabled, unless some rank's gradient is not finite. Returns the
  // closure's loss.
  torch::Tensor step(const torch::optim::Optimizer::LossClosure& closure,
                     const std::function<void()>& update);
  // `update` may tell that it is done with the first `parts` flat parameters: other ranks get what
  // it updated while it goes on.
  void updated(std::size_t parts);
  // What `update` finds. A zero factor never occurs; 1 means no clipping.
  float clip_factor() const { return clip_factor_; }
  MeanGradient& gradient() { return *gradient_; }

  int ranks() const { return group_.size(); }
  bool sharded() const { return is_sharded(options_.stage); }
  bool updates_shards() const {
    return lockstep::updates_shards(options_.stage, options_.share_parameters);
  }
  std::size_t parameters() const { return model_.tensors().size(); }
  const NamedParameter& parameter(std::size_t i) const;
  // The number of a trained parameter; none for another name.
  std::optional<std::size_t> number_of(const std::string& name) const;
  // All floating-point parameters of the module, frozen ones included.
  const std::vector<NamedParameter>& listed() const { return model_.listed(); }
  // Throws UsageError when there is an optimizer already.
  void register_optimizer(Clipping clipping);
  // Adds to the optimizer's part of the ledger.
  void add_optimizer_bytes(std::int64_t bytes) { optimizer_bytes_ += bytes; }
  Device& device() { return *device_; }
  const std::vector<FlatParameter*>& parts() const { return model_.parts(); }
  Place place(std::size_t i) const { return model_.place(i); }

  LocalGradient local_grad(const std::string& name) const;
  torch::Tensor full_grad(const std::string& name) const;
  torch::Tensor full_parameter(const std::string& name) const;
  void visit_full_parameter(const std::string& name,
                            const std::function<void(const torch::Tensor&)>& visit) const;
  LocalParameter local_parameter(const std::string& name) const;
  void set_parameter(const std::string& name, const torch::Tensor& values);
  void with_full_parameters(const std::function<void()>& body, FullParameters access);
  std::int64_t steps() const { return step_; }
  // Discards gradients and counts on from `steps`.
  void resume_at(std::int64_t steps);
  Group& group() const { return group_; }
  torch::nn::Module& module() const { return model_.module(); }
  HeldBytes held() const;
  const StepRecord& last_step() const { return record_; }
  void observe(StepObserver* observer);
  std::int64_t buckets() const { return static_cast<std::int64_t>(collector_->buckets()); }

 private:
  // idle: no gradient held. collecting: leaves arrive. exchanged: the mean gradient is in .grad.
  enum class Phase : std::uint8_t { idle, collecting, exchanged };
  enum class Loop : std::uint8_t { plain, micro_steps, no_sync };

  // Does a step of k leaves per rank exchange each of them?
  bool across_first(std::int64_t k) const;
  // In the step of micro_steps: which of its leaves the index-th here is.
  std::int64_t leaf_of(std::int64_t index) const;
  void check_micro_steps(std::int64_t k) const;
  bool shares_parameters() const {
    return lockstep::shares_parameters(options_.stage, options_.share_parameters);
  }
  std::size_t with_gradient(const std::string& name) const;
  void refuse_incomplete();

  // As synchronise(), and starts an empty exchange when this rank had no backward at all, so that
  // all ranks reach the decision.
  void require_decision();
  bool may_step() const;  // after it: false when a gradient is not finite
  void end_update();
  void stepped();
  void skipped();
  void on_gradient(std::size_t listed);
  void enter_backward(std::optional<std::size_t> with_gradient);
  void enter_recomputation();
  void refuse_carrying();
  void carry_gradients(std::optional<std::size_t> but_not);
  void end_backward();
  void end_units();
  void begin_step(GradientPlace place, GradientWidth width, LeafOrder order);
  void begin_loop_step(bool accumulates);
  void follow_unfreezing();
  void make_collector();
  void make_resident();
  void begin_leaf(std::int64_t leaf, bool exchanges);
  void exchange();
  void agree_on_order();
  void abandon();
  std::vector<bool> arrived() const;

  Group& group_;
  ParallelOptions options_;
  std::unique_ptr<Device> device_;
  Stopwatch exposed_;
  FlatModel model_;
  Buffers buffers_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<MeanGradient> gradient_;
  std::unique_ptr<GradientCollector> collector_;
  std::unique_ptr<GradientHooks> hooks_;
  std::optional<UpdatedValues> updated_values_;  // where shards are updated
  std::optional<RecomputingUnits> recomputing_;
  std::optional<ResidentUnits> resident_;  // where units are freed after forward
  bool follow_units_ = false;              // they have parameters that it doesn't know

  Phase phase_ = Phase::idle;
  Loop loop_ = Loop::plain;
  int backward_ = -1;            // the backward whose end is awaited
  std::weak_ptr<void> awaited_;  // lives as long as that backward
  std::int64_t k_ = 1;           // leaves that the loop of micro_steps announced
  std::int64_t leaves_ = 0;      // ended in this step
  double scale_ = 1.0;           // of the sum over ranks and leaves
  std::int64_t step_ = 0;
  float clip_factor_ = 1.0f;
  std::optional<Clipping> clipping_;  // given by the optimizer, when there is one
  std::int64_t optimizer_bytes_ = 0;
  StepRecord record_;
};

}  // namespace lockstep::parallel
