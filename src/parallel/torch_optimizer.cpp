#include "lockstep/optim.h"
#include "parallel/engine.h"

namespace lockstep::parallel {
namespace {

// In the parameter's shape where this rank keeps all of it.
at::Tensor shaped(const at::Tensor& kept, const at::Tensor& parameter) {
  return kept.numel() == parameter.numel() ? kept.view(parameter.sizes()) : kept;
}

// LibTorch's optimizers want the gradient in the parameter's own type.
void show_gradients(Engine& engine, const std::vector<torch::Tensor>& parameters,
                    const std::vector<Update>& updates) {
  if (engine.parameters() != parameters.size()) {
    throw UsageError("parameter '" + engine.parameter(parameters.size()).name +
                     "' was unfrozen after the torch::optim optimizer was made, which can't take "
                     "it in; unfreeze first, or use adamw() or sgd()");
  }
  for (const Update& update : updates) {
    const at::Tensor& parameter = parameters[update.parameter];
    parameter.mutable_grad() =
        shaped(engine.gradient().kept(update.parameter), engine.parameter(update.parameter).tensor)
            .to(parameter.scalar_type());
  }
}

}  // namespace

std::vector<torch::Tensor> full_precision_parameters(Engine& engine) {
  engine.register_optimizer(Clipping::in_place);
  std::vector<torch::Tensor> parameters;
  for (std::size_t i = 0; i < engine.parameters(); ++i) {
    const auto [part, member] = engine.place(i);
    parameters.push_back(
        shaped(engine.parts()[part]->kept_full_precision(member), engine.parameter(i).tensor));
  }
  return parameters;
}

torch::Tensor step_around(Engine& engine, const std::vector<torch::Tensor>& parameters,
                          const torch::optim::Optimizer::LossClosure& closure,
                          const std::function<void()>& update) {
  return engine.step(closure, [&] {
    engine.device().host_follows_compute();
    const std::vector<Update> updates = engine.gradient().updates();
    show_gradients(engine, parameters, updates);
    update();
    for (const Update& one : updates) {
      parameters[one.parameter].mutable_grad().reset();
      const auto [part, member] = engine.place(one.parameter);
      engine.parts()[part]->round_master(engine.device(), member);
    }
  });
}

void discard_gradients(Engine& engine) { engine.discard(); }

}  // namespace lockstep::parallel
