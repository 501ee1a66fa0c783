#include "base/invariant.h"
#include "lockstep/optim.h"
#include "parallel/engine.h"

#include <map>
#include <utility>

namespace lockstep {

namespace parallel {

// Both moments in flat memory beside the parameters, and each parameter's own step count.
class AdamWState : public OptimizerState {
 public:
  explicit AdamWState(Engine& engine) : engine_(engine), steps_(engine.parameters()) {
    std::int64_t bytes = 0;
    for (const FlatParameter* part : engine.parts()) {
      const Dtype dtype = part->dtype() == Dtype::f64 ? Dtype::f64 : Dtype::f32;
      for (std::vector<at::Tensor>* moments : {&first_, &second_}) {
        moments->push_back(flat_tensor(engine.device(), part->layout().size(), dtype));
        bytes += part->layout().size() * size_of(dtype);
      }
    }
    engine.register_optimizer(bytes);
  }

  std::int64_t& steps(std::size_t parameter) { return steps_.at(parameter); }
  // A view [elements of the parameter] of its first (0) or second (1) moment.
  at::Tensor moment(std::size_t parameter, int which) const {
    const auto [part, member] = engine_.place(parameter);
    const Range range = engine_.parts()[part]->layout().member(member);
    return (which == 0 ? first_ : second_).at(part).narrow(0, range.begin, range.size());
  }

  std::string kind() const override { return "adamw"; }
  std::vector<std::string> slots() const override { return {kFirst, kSecond}; }
  at::Tensor elements(const std::string& slot, const std::string& parameter) const override {
    LOCKSTEP_INVARIANT(slot == kFirst || slot == kSecond, ==, true);
    return moment(engine_.index_of(parameter), slot == kFirst ? 0 : 1);
  }
  std::int64_t updates(const std::string& parameter) const override {
    return steps_.at(engine_.index_of(parameter));
  }
  void set_updates(const std::string& parameter, std::int64_t updates) override {
    steps_.at(engine_.index_of(parameter)) = updates;
  }

 private:
  static constexpr const char* kFirst = "exp_avg";
  static constexpr const char* kSecond = "exp_avg_sq";

  Engine& engine_;
  std::vector<at::Tensor> first_;   // one per part, [layout.size()]
  std::vector<at::Tensor> second_;  // the same
  std::vector<std::int64_t> steps_;
};

}  // namespace parallel

namespace {

torch::optim::AdamWOptions torch_options(const AdamWOptions& options, double weight_decay) {
  return torch::optim::AdamWOptions(options.lr)
      .betas({options.beta1, options.beta2})
      .eps(options.eps)
      .weight_decay(weight_decay);
}

std::vector<torch::optim::OptimizerParamGroup> groups_of(const parallel::Engine& engine,
                                                         const AdamWOptions& options) {
  std::vector<torch::Tensor> decayed;
  std::vector<torch::Tensor> others;
  for (std::size_t i = 0; i < engine.parameters(); ++i) {
    const parallel::NamedParameter& parameter = engine.parameter(i);
    const bool decays = !options.decays || options.decays(parameter.name, parameter.tensor);
    (decays ? decayed : others).push_back(parameter.tensor);
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](std::vector<torch::Tensor> tensors, double decay) {
    groups.emplace_back(std::move(tensors), std::make_unique<torch::optim::AdamWOptions>(
                                                torch_options(options, decay)));
  };
  add(std::move(decayed), options.weight_decay);
  if (!others.empty()) {
    add(std::move(others), 0.0);
  }
  return groups;
}

optim::AdamWStep step_of(const torch::optim::AdamWOptions& options, std::int64_t step, float clip) {
  if (options.amsgrad()) {
    throw UsageError("AdamW: amsgrad is not built; set amsgrad(false) in the parameter group");
  }
  optim::AdamWStep result;
  result.lr = options.lr();
  result.beta1 = std::get<0>(options.betas());
  result.beta2 = std::get<1>(options.betas());
  result.eps = options.eps();
  result.weight_decay = options.weight_decay();
  result.step = step;
  result.clip = clip;
  return result;
}

std::string key(std::size_t parameter, const char* what) {
  return "parameter_" + std::to_string(parameter) + "_" + what;
}

}  // namespace

AdamW::AdamW(parallel::Engine& engine, const AdamWOptions& options)
    : Optimizer(groups_of(engine, options), std::make_unique<torch::optim::AdamWOptions>(
                                                torch_options(options, options.weight_decay))),
      engine_(engine),
      state_(std::make_unique<parallel::AdamWState>(engine)) {}

AdamW::~AdamW() = default;

torch::Tensor AdamW::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure) {
    const torch::AutoGradMode with_grad(true);
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  engine_.require_decision();
  if (!engine_.may_step()) {
    engine_.skipped();
    return loss;
  }
  std::map<const c10::TensorImpl*, const torch::optim::AdamWOptions*> options;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& tensor : group.params()) {
      options[tensor.unsafeGetTensorImpl()] =
          &static_cast<const torch::optim::AdamWOptions&>(group.options());
    }
  }
  for (const parallel::Engine::Update& update : engine_.updates()) {
    const at::Tensor& tensor = engine_.parameter(update.parameter).tensor;
    const optim::AdamWVectors vectors{
        .parameter = update.values,
        .master = update.master,
        .first_moment = state_->moment(update.parameter, 0).mutable_data_ptr(),
        .second_moment = state_->moment(update.parameter, 1).mutable_data_ptr(),
        .gradient = update.gradient};
    engine_.device().adamw(vectors,
                           step_of(*options.at(tensor.unsafeGetTensorImpl()),
                                   ++state_->steps(update.parameter), engine_.clip_factor()),
                           update.count);
  }
  engine_.stepped();
  return loss;
}

void AdamW::zero_grad(bool) { engine_.discard(); }

void AdamW::set_lr(double lr) {
  for (torch::optim::OptimizerParamGroup& group : param_groups()) {
    group.options().set_lr(lr);
  }
}

OptimizerState& AdamW::flat_state() { return *state_; }

void AdamW::save(torch::serialize::OutputArchive& archive) const {
  for (std::size_t i = 0; i < engine_.parameters(); ++i) {
    archive.write(key(i, "step"), torch::tensor(state_->steps(i)));
    archive.write(key(i, "first_moment"), state_->moment(i, 0).clone());
    archive.write(key(i, "second_moment"), state_->moment(i, 1).clone());
  }
}

void AdamW::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < engine_.parameters(); ++i) {
    torch::Tensor step;
    archive.read(key(i, "step"), step);
    state_->steps(i) = step.item<std::int64_t>();
    for (const int which : {0, 1}) {
      torch::Tensor moment;
      archive.read(key(i, which == 0 ? "first_moment" : "second_moment"), moment);
      state_->moment(i, which).copy_(moment);
    }
  }
}

}  // namespace lockstep
