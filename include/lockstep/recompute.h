// Activation checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"), as
// ParallelOptions::recompute asks for it: a Unit's forward keeps the tensors among its arguments
// and no activation, and runs once more in backward. What unit.h needs of it; programs don't.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::parallel {

using Tensors = std::vector<torch::Tensor>;

// One forward pass of a module that can be run again.
struct RepeatablePass {
  std::string unit;                           // the module's name, in errors
  std::shared_ptr<torch::nn::Module> module;  // its buffers stay as the first pass left them
  Tensors inputs;                             // tensors among the arguments
  // The pass with these tensors in the inputs' place; returns those of its output.
  std::function<Tensors(const Tensors& inputs)> forward;
  // Called, while it is set, in the running backward before the pass's own.
  std::shared_ptr<const std::function<void()>> before_backward;
};

// What the second pass begins with, to be noted before the first: the state of LibTorch's default
// generator, and how often each input was written to.
struct PassState {
  torch::Tensor generator;
  std::vector<std::uint32_t> versions;  // per input; 0 for an undefined one
};
PassState note_state(const Tensors& inputs);

// Is a pass run again now, on this thread?
bool in_second_pass();

// Does anything that the pass computes need a gradient?
bool needs_gradient(const RepeatablePass& pass);

// Gives `outputs`, which the first pass computed without a graph, a place in the graph: their
// backward runs the pass again with the noted state. Errors come from that backward, as UsageError:
// naming the unit: an input that was written to since, a second pass that gives other outputs,
// torch::autograd::grad() or create_graph, whose gradients a second pass can't tell apart.
Tensors recompute_in_backward(RepeatablePass pass, PassState state, Tensors outputs);

}  // namespace lockstep::parallel
