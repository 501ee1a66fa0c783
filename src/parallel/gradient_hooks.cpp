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

}  // namespace

GradientHooks::GradientHooks(std::vector<at::Tensor> parameters,
                             std::function<void(std::size_t)> on_gradient)
    : parameters_(std::move(parameters)) {
  for (const at::Tensor& parameter : parameters_) {
    if (torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr) {
      parameters_.clear();
      throw UsageError(
          "a parameter already has a post-accumulate-grad hook: another Parallel holds this "
          "module, or the program set one; a parameter belongs to one Parallel");
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameters_[i], std::make_unique<Hook>([on_gradient, i] { on_gradient(i); }));
  }
}

GradientHooks::~GradientHooks() {
  for (const at::Tensor& parameter : parameters_) {
    torch::autograd::impl::post_acc_grad_hooks(parameter).reset();
  }
}

void call_after_backward(std::function<void()> action) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(action));
}

int running_backward() { return torch::autograd::get_current_graph_task_id(); }

}  // namespace lockstep::parallel
