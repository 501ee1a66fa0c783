#include "lockstep/parallel.h"

#include "parallel/engine.h"

#include <utility>

namespace lockstep {

Parallel::Parallel(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options)
    : engine_(std::make_unique<parallel::Engine>(std::move(module), group, std::move(options),
                                                 parallel::make_cpu_device())) {}

Parallel::~Parallel() = default;

Parallel::MicroSteps Parallel::micro_steps(std::int64_t k) { return {engine_.get(), k}; }

Parallel::MicroBatches Parallel::micro_batches(const torch::data::Example<>& batch,
                                               std::int64_t k) {
  for (const torch::Tensor& tensor : {batch.data, batch.target}) {
    if (k < 1 || tensor.dim() == 0 || tensor.size(0) % k != 0) {
      throw UsageError(
          "micro_batches: a batch of " + std::to_string(tensor.dim() == 0 ? 0 : tensor.size(0)) +
          " samples does not divide into k = " + std::to_string(k) + " equal micro-batches");
    }
  }
  return {micro_steps(k), batch, k};
}

Parallel::NoSync Parallel::no_sync() { return NoSync(engine_.get()); }
void Parallel::synchronise() { engine_->synchronise(); }
double Parallel::clip_grad_norm(double max_norm) { return engine_->clip_grad_norm(max_norm); }
double Parallel::grad_norm() { return engine_->grad_norm(); }
AdamW Parallel::adamw(AdamWOptions options) { return AdamW(*engine_, options); }

double Parallel::mean_loss(std::span<const double> losses) { return engine_->mean_loss(losses); }

torch::Tensor Parallel::full_parameter(const std::string& name) const {
  return engine_->full_parameter(name);
}

HeldBytes Parallel::held() const { return engine_->held(); }
const StepRecord& Parallel::last_step() const { return engine_->last_step(); }
void Parallel::observe(StepObserver* observer) { engine_->observe(observer); }
std::int64_t Parallel::buckets() const { return engine_->buckets(); }

Parallel::MicroSteps::Iterator::Iterator(parallel::Engine* engine, MicroStep step, std::int64_t k)
    : engine_(engine), step_(step), k_(k) {}

Parallel::MicroSteps::Iterator& Parallel::MicroSteps::Iterator::operator++() {
  step_ = engine_->next_micro_step(step_, k_);
  return *this;
}

Parallel::MicroSteps::Iterator Parallel::MicroSteps::begin() const {
  return {engine_, engine_->begin_micro_steps(k_), k_};
}

Parallel::MicroSteps::Iterator Parallel::MicroSteps::end() const {
  return {engine_, {.index = k_, .leaf = 0, .last = true}, k_};
}

Parallel::MicroBatches::Iterator::Iterator(MicroSteps::Iterator step,
                                           const torch::data::Example<>* batch, std::int64_t k)
    : step_(step), batch_(batch), k_(k) {}

torch::data::Example<>& Parallel::MicroBatches::Iterator::operator*() {
  const std::int64_t samples = batch_->data.size(0) / k_;
  const std::int64_t begin = (*step_).index * samples;
  current_ = {batch_->data.narrow(0, begin, samples), batch_->target.narrow(0, begin, samples)};
  return current_;
}

Parallel::MicroBatches::Iterator& Parallel::MicroBatches::Iterator::operator++() {
  ++step_;
  return *this;
}

Parallel::NoSync::NoSync(parallel::Engine* engine) : engine_(engine) { engine_->enter_no_sync(); }
Parallel::NoSync::NoSync(NoSync&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)) {}
Parallel::NoSync::~NoSync() {
  if (engine_ != nullptr) {
    engine_->leave_no_sync();
  }
}

}  // namespace lockstep
