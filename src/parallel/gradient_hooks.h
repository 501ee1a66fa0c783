// LibTorch's post-accumulate-grad hooks, one per parameter, removed with this object.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

namespace lockstep::parallel {

class GradientHooks {
 public:
  // Calls `on_gradient(i)` whenever backward has accumulated into parameters[i].grad(), without
  // recording a graph. Throws UsageError when a parameter that is trained already has such a hook
  // (LibTorch keeps one per tensor); a frozen one is then left alone until take().
  GradientHooks(std::vector<at::Tensor> parameters, std::function<void(std::size_t)> on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  // Makes sure that the hook of parameters[i] is ours. Throws UsageError when it is another's.
  void take(std::size_t i);

 private:
  std::vector<at::Tensor> parameters_;
  std::function<void(std::size_t)> on_gradient_;
  std::vector<bool> ours_;
};

// Calls `action` once when the backward that is running has ended. After an exception in it the
// action is dropped instead.
void call_after_backward(std::function<void()> action);

// The backward that is running on this thread, or −1.
int running_backward();

// Does backward give it a gradient?
inline bool takes_gradient(const at::Tensor& tensor) {
  return tensor.defined() && tensor.requires_grad();
}

}  // namespace lockstep::parallel
