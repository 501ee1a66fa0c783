#include "lockstep/parallel.h"

#include "parallel/engine.h"

#include <utility>

namespace lockstep {

Parallel::Parallel(std::shared_ptr<torch::nn::Module> module, Group& group, ParallelOptions options)
    : engine_(std::make_unique<parallel::Engine>(std::move(module), group, std::move(options),
                                                 parallel::make_cpu_device())) {}

Parallel::~Parallel() = default;

Parallel::MicroSteps Parallel::micro_steps(std::int64_t k) { return {engine_.get(), k}; }

Parallel::MicroSteps Parallel::weighted_micro_steps(std::vector<std::int64_t> weights) {
  return {engine_.get(), std::move(weights)};
}

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
LocalGradient Parallel::local_grad(const std::string& name) const {
  return engine_->local_grad(name);
}
torch::Tensor Parallel::full_grad(const std::string& name) const {
  return engine_->full_grad(name);
}
double Parallel::clip_grad_norm(double max_norm) { return engine_->clip_grad_norm(max_norm); }
double Parallel::grad_norm() { return engine_->grad_norm(); }

AdamW Parallel::adamw(const AdamWOptions& options,
                      const std::vector<ParameterGroup<AdamWOptions>>& groups) {
  return AdamW(*engine_, options, groups);
}
SGD Parallel::sgd(const SGDOptions& options,
                  const std::vector<ParameterGroup<SGDOptions>>& groups) {
  return SGD(*engine_, options, groups);
}

double Parallel::mean_loss(std::span<const double> losses) {
  const auto here = static_cast<std::int64_t>(losses.size());
  return engine_->mean_loss(losses, here * engine_->ranks());
}
double Parallel::mean_loss(std::span<const double> sums, std::int64_t total_weight) {
  return engine_->mean_loss(sums, total_weight);
}

torch::Tensor Parallel::full_parameter(const std::string& name) const {
  return engine_->full_parameter(name);
}

void Parallel::visit_full_parameter(const std::string& name,
                                    const std::function<void(const torch::Tensor&)>& visit) const {
  engine_->visit_full_parameter(name, visit);
}

LocalParameter Parallel::local_parameter(const std::string& name) const {
  return engine_->local_parameter(name);
}

void Parallel::set_parameter(const std::string& name, const torch::Tensor& values) {
  engine_->set_parameter(name, values);
}

void Parallel::with_full_parameters(const std::function<void()>& body, FullParameters access) {
  engine_->with_full_parameters(body, access);
}

std::int64_t Parallel::steps() const { return engine_->steps(); }
void Parallel::resume_at(std::int64_t steps) { engine_->resume_at(steps); }
torch::nn::Module& Parallel::module() const { return engine_->module(); }
Group& Parallel::group() const { return engine_->group(); }

HeldBytes Parallel::held() const { return engine_->held(); }
const StepRecord& Parallel::last_step() const { return engine_->last_step(); }
void Parallel::observe(StepObserver* observer) { engine_->observe(observer); }
std::int64_t Parallel::buckets() const { return engine_->buckets(); }

Parallel::MicroSteps::MicroSteps(parallel::Engine* engine, std::int64_t k)
    : engine_(engine), k_(k), total_weight_(k * engine->ranks()) {}

Parallel::MicroSteps::MicroSteps(parallel::Engine* engine, std::vector<std::int64_t> weights)
    : engine_(engine),
      k_(static_cast<std::int64_t>(weights.size())),
      weights_(std::move(weights)),
      total_weight_(engine->total_weight(weights_)) {}

Parallel::MicroSteps::Iterator::Iterator(const MicroSteps& steps, MicroStep step)
    : steps_(&steps), step_(step) {
  set_weight();
}

Parallel::MicroSteps::Iterator& Parallel::MicroSteps::Iterator::operator++() {
  step_ = steps_->engine_->next_micro_step(step_, steps_->k_);
  set_weight();
  return *this;
}

void Parallel::MicroSteps::Iterator::set_weight() {
  if (step_.index < static_cast<std::int64_t>(steps_->weights_.size())) {
    step_.weight = steps_->weights_[static_cast<std::size_t>(step_.index)];
  }
}

Parallel::MicroSteps::Iterator Parallel::MicroSteps::begin() const {
  return {*this, engine_->begin_micro_steps(k_, total_weight_)};
}

Parallel::MicroSteps::Iterator Parallel::MicroSteps::end() const {
  return {*this, {.index = k_, .leaf = 0, .last = true}};
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
