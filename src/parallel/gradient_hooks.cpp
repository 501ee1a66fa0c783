#include "parallel/gradient_hooks.h"

#include "lockstep/error.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace lockstep::parallel {
namespace {

class Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit Hook(std::function<void()> action) : action_(std::move(action)) {}
  void operator()(const at::Tensor& parameter) override {
    if (!parameter.grad().defined()) {
      return;  // fires for an undefined gradient too
    }
    const torch::NoGradGuard no_grad;
    action_();
  }

 private:
  std::function<void()> action_;
};

// A tensor that never needed a gradient has no place for a hook yet.
bool has_hook(const at::Tensor& parameter) {
  return parameter.unsafeGetTensorImpl()->autograd_meta() != nullptr &&
         torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr;
}

void require_free(const at::Tensor& parameter) {
  if (has_hook(parameter)) {
    throw UsageError(
        "a parameter already has a post-accumulate-grad hook: another Parallel holds this "
        "module, or the program set one; a parameter belongs to one Parallel");
  }
}

}  // namespace

GradientHooks::GradientHooks(std::vector<at::Tensor> parameters,
                             std::function<void(std::size_t)> on_gradient)
    : parameters_(std::move(parameters)),
      on_gradient_(std::move(on_gradient)),
      ours_(parameters_.size(), false) {
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.requires_grad()) {
      require_free(parameter);
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!has_hook(parameters_[i])) {
      take(i);
    }
  }
}

void GradientHooks::take(std::size_t i) {
  if (ours_.at(i)) {
    return;
  }
  require_free(parameters_[i]);
  torch::autograd::impl::set_post_acc_grad_hooks(
      parameters_[i], std::make_unique<Hook>([on_gradient = on_gradient_, i] { on_gradient(i); }));
  ours_[i] = true;
}

GradientHooks::~GradientHooks() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (ours_[i]) {
      torch::autograd::impl::post_acc_grad_hooks(parameters_[i]).reset();
    }
  }
}

void call_after_backward(std::function<void()> action) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(action));
}

int running_backward() { return torch::autograd::get_current_graph_task_id(); }

}  // namespace lockstep::parallel
