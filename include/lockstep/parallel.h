// Trains one torch::nn::Module on all ranks of a group.
//
//   lockstep::Parallel parallel(model, world, {.stage = lockstep::Stage::ddp});
//   auto optimizer = parallel.adamw({.lr = 3e-4, .weight_decay = 0.1});
//   for (auto& batch : loader) {
//     for (auto& micro : parallel.micro_batches(batch, k)) loss_of(model, micro).backward();
//     parallel.clip_grad_norm(1.0);
//     optimizer.step();
//   }
//
// A step's gradient is the mean over its M = P·k leaves (micro-batches), added in the one tree of
// the design and rounded once; losses are means over their micro-batch. Hand-written loops under
// no_sync() follow PyTorch instead: the sum over the backwards of a rank, the mean over ranks,
// added to what .grad holds already.
//
// The module may be any torch::nn::Module. Parameters may be frozen and unfrozen between steps on
// all ranks alike: one that was frozen from the start costs no gradient and no optimizer memory
// until it is unfrozen; one that is frozen later keeps both, and its state. Replacing a parameter
// (or its storage) is an error that names it, as far as the module's own list shows it.
//
// Threads: everything, backward() included, happens on the thread that made the Parallel.
// Errors: UsageError for what can't be done, GroupError when ranks fail or disagree.
#pragma once

#include "lockstep/group.h"
#include "lockstep/optim.h"
#include "lockstep/stage.h"
#include "lockstep/step_observer.h"

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

namespace parallel {
class Engine;
}

// In what type parameters are held and gradients travel.
struct Precision {
  torch::Dtype parameters = torch::kFloat32;
  // Parameters (by name) that stay in fp32 although `parameters` is narrower: norms, usually.
  std::function<bool(const std::string& name)> keep_f32 = {};

  static Precision f32() { return {}; }
  // bf16 parameters and gradients, fp32 master and moments in the optimizer.
  static Precision bf16_mixed(std::function<bool(const std::string& name)> keep_f32 = {}) {
    return {torch::kBFloat16, std::move(keep_f32)};
  }
};

// What happens to the module's buffers (batch norm's running statistics) when a step's gradients
// have been exchanged; until then every rank's follow its own forward passes. Buffers that are not
// floating point are rank 0's under either policy.
//   broadcast  rank 0's, as PyTorch's data parallelism has them at the next forward
//   average    the mean over ranks (over leaves in micro_steps), added in fp64, rounded once
//
// In micro_steps every leaf starts from the buffers as they were at the step's start, and what the
// step leaves behind is leaf 0's (broadcast) or the mean over all leaves (average): so they don't
// hang on how the leaves are spread over ranks, just as the gradient does not. A step counter
// counts steps, not micro-batches. Hand-written loops let buffers run on from forward to forward,
// as LibTorch does. Skipped steps keep their buffers. Buffers keep their dtype under every
// Precision.
enum class BufferPolicy : std::uint8_t { broadcast, average };

// Where zero2 and zero3 add up several micro-batches of a step:
//   shard  each is reduced across the ranks into the shards at once: k times the traffic, a P-th of
//          the memory; micro-batch j of rank r is then leaf j·P + r
//   full   on every rank first, as in the other stages and under no_sync(); what that takes is held
//          from the first micro-batch to the exchange only
enum class AccumulateIn : std::uint8_t { shard, full };

// What becomes of a zero3 unit's parameters between its forward and its backward:
//   always  freed and gathered again, as between hosts: readable in its own passes only (elsewhere
//           use full_parameter()), and all ranks use the units in one order, else step's Mismatch
//   never   they stay readable, which on one host costs no memory
// What lies outside of all units stays readable either way.
enum class Reshard : std::uint8_t { always, never };

struct ParallelOptions {
  Stage stage = Stage::ddp;
  Precision precision = {};
  BufferPolicy buffers = BufferPolicy::broadcast;
  AccumulateIn accumulate_in = AccumulateIn::shard;
  // One copy of the parameters for all ranks of a host, as zero3 always has: each rank updates its
  // shard of them, and keeps the masters and the optimizer state of that shard only. Outside of the
  // optimizer parameters are for reading; see set_parameter().
  bool share_parameters = false;
  Reshard reshard = Reshard::never;  // zero3
  std::int64_t unit_blocks = 1;      // zero3: so many Units (unit.h) in a row travel as one
  double bucket_mb = 25.0;  // 1 MB = 1e6 bytes of gradient; the first bucket is smaller; 0: one
                            // collective per parameter
  bool overlap = true;      // off: collectives start when backward has ended
  // Units (unit.h) keep no activations for backward: it runs their forward again, with the same
  // draws of LibTorch's default generator, for about a third more time (more where units hold
  // units). The first pass runs without gradients and on copies of the arguments. What forward
  // writes besides its output it writes twice, but for buffers, which stay as the first pass left
  // them; its result must not hang on what it writes. Needs backward() without create_graph and
  // without chosen inputs.
  bool recompute = false;
  // Same bits whatever the number of ranks: leaves add in the tree inside a rank too. Needs powers
  // of two for ranks and micro-batches.
  bool reproducible = false;
  // Seeds LibTorch's default generator at each micro-batch from (seed, step, leaf), so that dropout
  // hangs on the leaf and not on the rank.
  std::uint64_t seed = 0;
};

// One leaf of a step on this rank.
struct MicroStep {
  std::int64_t index = 0;   // 0 … k−1 on this rank
  std::int64_t leaf = 0;    // 0 … P·k−1 in the step
  bool last = false;        // its backward synchronises
  std::int64_t weight = 1;  // as given to weighted_micro_steps()
};

// What with_full_parameters() is for.
enum class FullParameters : std::uint8_t { read, write };

// Bytes this rank holds for the model, by category (the ledger).
struct HeldBytes {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t transient = 0;
};

// Elements [begin, end) of a parameter's mean gradient, row-major: those that this rank updates.
struct LocalGradient {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  torch::Tensor values = {};  // [end − begin]: a view
};

// Elements [begin, end) of a parameter in full precision, row-major: those that this rank keeps.
struct LocalParameter {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool everywhere = true;     // every rank keeps all of it
  torch::Tensor values = {};  // [end − begin]: a view, not to be written
};

// What the last step did, for records and tests.
struct StepRecord {
  double exposed_ms = 0;                       // this thread in collectives and waits
  std::int64_t collectives = 0;                // gradient buckets exchanged
  bool first_bucket_before_last_hook = false;  // was the exchange overlapped with backward
  bool skipped = false;  // a non-finite gradient on some rank: no rank stepped
};

class Parallel {
 public:
  // Collective. Verifies that all ranks have the same parameters (Mismatch names the first that
  // differs), broadcasts rank 0's values and buffers, and moves parameters into flat memory.
  // `group` must outlive the Parallel; nobody else may use it meanwhile (Group::split).
  Parallel(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options = {});
  template <class Module>
  Parallel(torch::nn::ModuleHolder<Module> module, Group& group, ParallelOptions options = {})
      : Parallel(std::static_pointer_cast<torch::nn::Module>(module.ptr()), group,
                 std::move(options)) {}
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  // The k leaves of this rank in the next step: iterate over all of them, one backward (or several)
  // in each; the last one's backward exchanges the gradients.
  //   for (const MicroStep& micro : parallel.micro_steps(k)) …
  class MicroSteps;
  MicroSteps micro_steps(std::int64_t k = 1);
  // The same with leaves that count by a weight: the tokens (or samples) that a leaf's loss is a
  // sum over, one for each of this rank's k leaves. The step's gradient is the sum of all leaves'
  // gradients over the sum of all weights: the mean over every token of all ranks and
  // micro-batches, with the same bits under `reproducible` whatever the number of ranks. A leaf of
  // weight 0 needs no backward, so ranks that have run out of data take part: see joined() in
  // data.h. Collective; throws UsageError on every rank when the weights are all 0, or fewer on
  // some rank.
  //   auto leaves = parallel.weighted_micro_steps(tokens);
  //   for (const MicroStep& micro : leaves) {
  //     … loss summed over the tokens, or their mean × micro.weight
  //   }
  //   parallel.mean_loss(sums, leaves.total_weight());
  MicroSteps weighted_micro_steps(std::vector<std::int64_t> weights);
  // The same as micro_steps over the k equal parts of a batch along its first dimension; UsageError
  // when the batch does not divide by k.
  class MicroBatches;
  MicroBatches micro_batches(const torch::data::Example<>& batch, std::int64_t k = 1);

  // Backwards while the returned object lives only accumulate; the first one after it exchanges.
  class [[nodiscard]] NoSync;
  NoSync no_sync();
  // Completes the exchange of whatever has been accumulated; a no-op when nothing is outstanding.
  void synchronise();

  // After the synchronising backward p.grad() is a view of the mean gradient (an fp32 one with bf16
  // parameters and k > 1, holding bf16 values); undefined for parameters unused on every rank. In
  // zero1 only the elements of this rank's shard hold the mean, the others this rank's own sums; in
  // zero2 and zero3 .grad is undefined. So there another backward before the step, which would add
  // to it, is an error outside no_sync() and micro_steps().

  // The same by parameter, in every stage, after the exchange and before the step. Throws
  // UsageError at other times and for an unknown name; without a gradient on any rank `values` is
  // undefined.
  LocalGradient local_grad(const std::string& name) const;
  // Collective: all of it, [the parameter's shape].
  torch::Tensor full_grad(const std::string& name) const;

  // The norm over all parameters, before clipping; the same bits on every rank. An optimizer made
  // by adamw() or sgd() multiplies by min(1, max_norm/norm) as it updates, .grad keeps the
  // unclipped values; without such an optimizer .grad is scaled in place.
  double clip_grad_norm(double max_norm);
  double grad_norm();

  // A torch::optim::Optimizer over the module's parameters (optim.h), those frozen now included. A
  // second one is an error: each parameter belongs to one optimizer.
  AdamW adamw(const AdamWOptions& options = {},
              const std::vector<ParameterGroup<AdamWOptions>>& groups = {});
  SGD sgd(const SGDOptions& options = {},
          const std::vector<ParameterGroup<SGDOptions>>& groups = {});
  // One of LibTorch's elementwise optimizers: parallel.optimizer<torch::optim::RMSprop>(options).
  template <class Optimizer, class Options>
  TorchOptimizer<Optimizer> optimizer(const Options& options) {
    return TorchOptimizer<Optimizer>(*engine_, options);
  }

  // The step's loss: the mean of all leaves' losses, added in the gradient's tree in fp64.
  // Collective; `losses` are this rank's k leaves in order.
  double mean_loss(std::span<const double> losses);
  // The same for weighted leaves, whose losses are sums over what their weights count.
  double mean_loss(std::span<const double> sums, std::int64_t total_weight);

  // The fp32 value of a parameter (the master copy where there is one): a view, not to be written.
  // In the sharded stages and with share_parameters, with 16-bit parameters, collective and a copy:
  // every rank keeps a part of the masters.
  torch::Tensor full_parameter(const std::string& name) const;
  // The same without memory for all of it: calls `visit` with its elements in order, in contiguous
  // 1-D pieces, each valid during its call. `visit` must not throw where it is collective.
  void visit_full_parameter(const std::string& name,
                            const std::function<void(const torch::Tensor& piece)>& visit) const;
  // The part of it that this rank keeps, in full precision; not collective. Throws UsageError for
  // an unknown name.
  LocalParameter local_parameter(const std::string& name) const;
  // Sets a parameter in full precision; what forward reads is its rounding. Between steps, on every
  // rank with the same values; collective in zero3 and with share_parameters. Throws UsageError for
  // an unknown name or another shape.
  void set_parameter(const std::string& name, const torch::Tensor& values);

  // Calls `body` while every trained parameter of the module is whole and in full precision (fp32
  // where it is held in 16 bits), as torch::save(), an average of the weights or clamping want
  // them. With `write` what `body` leaves in the parameters, the same on every rank, becomes their
  // value, and what forward reads its rounding. Costs 4 bytes per parameter while it lasts, with
  // `write` or where parameters are held in 16 bits. Collective, between steps: UsageError
  // otherwise. `body` calls nothing collective. When it throws on some rank, or writes for reading,
  // all ranks throw (UsageError for a UsageError, else Error), and with `write` nothing is changed.
  void with_full_parameters(const std::function<void()>& body,
                            FullParameters access = FullParameters::read);

  // Steps taken or skipped; with the seed and the leaf it decides dropout.
  std::int64_t steps() const;
  // Discards gradients and counts on from `steps`, as a run does that was saved then.
  void resume_at(std::int64_t steps);

  torch::nn::Module& module() const;
  Group& group() const;

  HeldBytes held() const;
  const StepRecord& last_step() const;
  // Tells `observer` where the time of the following steps goes; nullptr: nobody. Call it between
  // steps; the observer must outlive its observing.
  void observe(StepObserver* observer);
  std::int64_t buckets() const;

 private:
  std::unique_ptr<parallel::Engine> engine_;
};

class Parallel::MicroSteps {
 public:
  class Iterator {
   public:
    Iterator(const MicroSteps& steps, MicroStep step);
    const MicroStep& operator*() const { return step_; }
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return step_.index != other.step_.index; }

   private:
    void set_weight();

    const MicroSteps* steps_;
    MicroStep step_;
  };
  MicroSteps(parallel::Engine* engine, std::int64_t k);
  MicroSteps(parallel::Engine* engine, std::vector<std::int64_t> weights);
  // The iterator refers to this object.
  Iterator begin() const;
  Iterator end() const;
  // Of all leaves of the step, on all ranks; their number when each counts once.
  std::int64_t total_weight() const { return total_weight_; }

 private:
  parallel::Engine* engine_;
  std::int64_t k_;
  std::vector<std::int64_t> weights_;  // per leaf of this rank; empty: each counts once
  std::int64_t total_weight_;
};

class Parallel::MicroBatches {
 public:
  class Iterator {
   public:
    Iterator(MicroSteps::Iterator step, const torch::data::Example<>* batch, std::int64_t k);
    torch::data::Example<>& operator*();
    Iterator& operator++();
    bool operator!=(const Iterator& other) const { return step_ != other.step_; }

   private:
    MicroSteps::Iterator step_;
    const torch::data::Example<>* batch_;
    std::int64_t k_;
    torch::data::Example<> current_;
  };
  MicroBatches(MicroSteps steps, torch::data::Example<> batch, std::int64_t k)
      : steps_(steps), batch_(std::move(batch)), k_(k) {}
  Iterator begin() const { return {steps_.begin(), &batch_, k_}; }
  Iterator end() const { return {steps_.end(), &batch_, k_}; }

 private:
  MicroSteps steps_;
  torch::data::Example<> batch_;
  std::int64_t k_;
};

class Parallel::NoSync {
 public:
  explicit NoSync(parallel::Engine* engine);
  NoSync(NoSync&& other) noexcept;
  ~NoSync();

 private:
  parallel::Engine* engine_;
};

}  // namespace lockstep
