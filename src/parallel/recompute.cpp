#include "lockstep/recompute.h"

#include "lockstep/error.h"
#include "parallel/gradient_hooks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace lockstep::parallel {
namespace {

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

thread_local int second_passes = 0;

class SecondPass {
 public:
  SecondPass() { ++second_passes; }
  ~SecondPass() { --second_passes; }
  SecondPass(const SecondPass&) = delete;
  SecondPass& operator=(const SecondPass&) = delete;
};

// Has the second pass draw what the first one drew, and nobody else notice.
class SameDraws {
 public:
  explicit SameDraws(const at::Tensor& state) : now_(generator_state()) {
    set_generator_state(state);
  }
  ~SameDraws() { set_generator_state(now_); }
  SameDraws(const SameDraws&) = delete;
  SameDraws& operator=(const SameDraws&) = delete;

 private:
  at::Tensor now_;
};

// A batch norm counts a batch once.
class SameBuffers {
 public:
  explicit SameBuffers(const torch::nn::Module& module) : buffers_(module.buffers()) {
    for (const at::Tensor& buffer : buffers_) {
      copies_.push_back(buffer.defined() ? buffer.detach().clone() : at::Tensor());
    }
  }
  ~SameBuffers() {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].defined() && !at::equal(buffers_[i], copies_[i])) {
        buffers_[i].copy_(copies_[i]);
      }
    }
  }
  SameBuffers(const SameBuffers&) = delete;
  SameBuffers& operator=(const SameBuffers&) = delete;

 private:
  Tensors buffers_;
  Tensors copies_;
};

std::uint32_t version_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<std::uint32_t>(tensor._version()) : 0;
}

// What the node keeps.
struct Kept final : torch::CustomClassHolder {
  RepeatablePass pass;
  PassState state;
  Tensors first_outputs;            // until the node has them
  std::size_t outputs = 0;          // of the pass; some may be undefined
  std::vector<std::size_t> places;  // of the node's outputs among them
  bool released = false;
};

[[noreturn]] void refuse(const Kept& kept, const std::string& what) {
  throw UsageError("recompute: unit '" + kept.pass.unit + "': " + what);
}

void refuse_unsupported(const Kept& kept) {
  if (torch::GradMode::is_enabled()) {
    refuse(kept,
           "backward with create_graph would need the graph of the second pass; turn recompute off "
           "for a double backward");
  }
  const auto* const chosen = torch::autograd::get_current_graph_task_exec_info();
  if (chosen != nullptr && !chosen->empty()) {
    refuse(kept,
           "gradients of chosen tensors (autograd::grad, backward with inputs) would reach every "
           "parameter of the unit; turn recompute off, or call backward() without inputs");
  }
  if (kept.released) {
    refuse(kept, "a second backward through the same graph; give retain_graph to the first");
  }
  for (std::size_t i = 0; i < kept.pass.inputs.size(); ++i) {
    if (version_of(kept.pass.inputs[i]) != kept.state.versions[i]) {
      refuse(kept, "tensor " + std::to_string(i) +
                       " among its arguments was written to in place, in its forward or after; use "
                       "an operation that makes a new tensor, or turn recompute off");
    }
  }
}

// What the second pass gives must be what the gradients belong to.
void refuse_other_outputs(const Kept& kept, const Tensors& outputs, const Tensors& gradients) {
  bool same = outputs.size() == kept.outputs;
  for (std::size_t i = 0; same && i < gradients.size(); ++i) {
    const at::Tensor& output = outputs[kept.places[i]];
    same = output.defined() && (!gradients[i].defined() || gradients[i].sizes() == output.sizes());
  }
  if (!same) {
    refuse(kept,
           "its second forward gave other outputs than the first, in number or shape; its result "
           "must not hang on what it writes itself, or turn recompute off");
  }
}

// The second pass, and the backward of its own graph. Returns the gradients of those inputs that
// take one.
Tensors run_again(const Kept& kept, const Tensors& gradients) {
  Tensors inputs;
  for (const at::Tensor& input : kept.pass.inputs) {
    at::Tensor own = input.defined() ? input.detach() : at::Tensor();
    if (takes_gradient(input)) {
      own.requires_grad_();
    }
    inputs.push_back(own);
  }
  const SameBuffers buffers(*kept.pass.module);
  Tensors outputs;
  {
    const torch::AutoGradMode with_graph(true);
    const SecondPass second;
    const SameDraws draws(kept.state.generator);
    outputs = kept.pass.forward(inputs);
  }
  refuse_other_outputs(kept, outputs, gradients);
  Tensors roots;
  Tensors root_gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& output = outputs[kept.places[i]];
    if (takes_gradient(output) && gradients[i].defined()) {
      roots.push_back(output);
      root_gradients.push_back(gradients[i]);
    }
  }
  if (!roots.empty()) {
    torch::autograd::backward(roots, root_gradients);
  }
  Tensors result;
  for (const at::Tensor& input : inputs) {
    if (takes_gradient(input)) {
      result.push_back(input.grad());
    }
  }
  return result;
}

bool shares_memory(const at::Tensor& output, const Tensors& tensors) {
  return output.has_storage() && std::ranges::any_of(tensors, [&](const at::Tensor& one) {
           return one.defined() && one.has_storage() && one.storage().is_alias_of(output.storage());
         });
}

// Not a tensor that others hold, which would get our history, nor one that shares its memory, which
// a caller's write to the output would change for the second pass, nor a view, which LibTorch would
// let nobody write to.
at::Tensor free_of_history(const at::Tensor& output, const RepeatablePass& pass) {
  const bool shared = shares_memory(output, pass.inputs) ||
                      shares_memory(output, pass.module->parameters()) ||
                      shares_memory(output, pass.module->buffers());
  return shared ? output.detach().clone() : at::Tensor(output.variable_data());
}

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // `ties`: the inputs that take a gradient, and one more, so that there is a node where only
  // parameters take one.
  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList ties,
                         const c10::intrusive_ptr<Kept>& kept) {
    context->set_materialize_grads(false);
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    context->saved_data["arguments"] = static_cast<std::int64_t>(ties.size() + 1);
    return std::move(kept->first_outputs);
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    const auto kept =
        c10::static_intrusive_pointer_cast<Kept>(context->saved_data["kept"].toCapsule());
    refuse_unsupported(*kept);
    if (*kept->pass.before_backward) {
      (*kept->pass.before_backward)();
    }
    Tensors result = run_again(*kept, gradients);
    if (!torch::autograd::get_current_graph_task_keep_graph()) {
      kept->pass.inputs.clear();
      kept->pass.forward = nullptr;
      kept->released = true;
    }
    result.resize(static_cast<std::size_t>(context->saved_data["arguments"].toInt()));
    return result;
  }
};

}  // namespace

bool in_second_pass() { return second_passes > 0; }

PassState note_state(const Tensors& inputs) {
  PassState state{generator_state(), {}};
  for (const at::Tensor& input : inputs) {
    state.versions.push_back(version_of(input));
  }
  return state;
}

bool needs_gradient(const RepeatablePass& pass) {
  return std::ranges::any_of(pass.inputs, takes_gradient) ||
         std::ranges::any_of(pass.module->parameters(), takes_gradient);
}

Tensors recompute_in_backward(RepeatablePass pass, PassState state, Tensors outputs) {
  Tensors ties;
  for (const at::Tensor& input : pass.inputs) {
    if (takes_gradient(input)) {
      ties.push_back(input);
    }
  }
  ties.push_back(torch::empty({0}).requires_grad_());
  auto kept = c10::make_intrusive<Kept>();
  kept->outputs = outputs.size();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined()) {
      kept->first_outputs.push_back(free_of_history(outputs[i], pass));
      kept->places.push_back(i);
    }
  }
  kept->pass = std::move(pass);
  kept->state = std::move(state);
  const Tensors joined = Recompute::apply(at::TensorList(ties), kept);
  for (std::size_t i = 0; i < joined.size(); ++i) {
    outputs[kept->places[i]] = joined[i];
  }
  return outputs;
}

}  // namespace lockstep::parallel
