// Unit<Block>: a module that the engine treats as one piece. It *is* a Block: the same parameter
// names, the same checkpoints, usable in Sequential and AnyModule.
//
//   TORCH_MODULE(Block);                        // BlockImpl : torch::nn::Module
//   std::vector<lockstep::Unit<Block>> blocks;  // register_module as usual
//
// `forward` is not virtual in LibTorch, so UnitImpl derives from the module and wraps its forward;
// calls through the holder (`block(x)`) and through `block->forward(x)` both pass the wrapper.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <utility>

namespace lockstep {

// The engine's view of a unit, whatever module it wraps.
class UnitBase {
 public:
  virtual ~UnitBase() = default;
  // Forward passes since construction.
  std::int64_t forwards() const { return forwards_; }

 protected:
  void entered() { ++forwards_; }

 private:
  std::int64_t forwards_ = 0;
};

template <class Module>
class UnitImpl : public Module, public UnitBase {
 public:
  using Module::Module;

  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    entered();
    return Module::forward(std::forward<Arguments>(arguments)...);
  }
};

// The holder, with the constructor arguments of the module.
template <class Holder>
class Unit : public torch::nn::ModuleHolder<UnitImpl<typename Holder::ContainedType>> {
 public:
  using Base = torch::nn::ModuleHolder<UnitImpl<typename Holder::ContainedType>>;
  using Base::Base;

  template <class... Arguments>
  auto operator()(Arguments&&... arguments) {
    return this->impl_->forward(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace lockstep
