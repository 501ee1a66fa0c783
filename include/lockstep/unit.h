// Unit<Block>: a module that the engine treats as one piece. It *is* a Block: the same parameter
// names, the same checkpoints, usable in Sequential and AnyModule, cloned as a Unit.
//
//   TORCH_MODULE(Block);                        // BlockImpl : torch::nn::Module
//   std::vector<lockstep::Unit<Block>> blocks;  // register_module as usual
//
// `forward` is not virtual in LibTorch, so UnitImpl derives from the module and wraps it: calls
// through the holder (`block(x)`), with default arguments and overloads, and through
// `block->forward(x)` with all arguments. AnyModule and Sequential need a module with exactly one,
// non-template forward, as they do without Unit. Its output must be one of outputs.h.
#pragma once

#include "lockstep/outputs.h"

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace lockstep {

// The engine's view of a unit, whatever module it wraps.
class UnitBase {
 public:
  UnitBase() = default;
  UnitBase(const UnitBase&) noexcept {}
  UnitBase& operator=(const UnitBase&) noexcept { return *this; }
  virtual ~UnitBase() = default;
  // Forward passes of this object so far.
  std::int64_t forwards() const { return forwards_; }

 protected:
  void entered() { ++forwards_; }

 private:
  std::int64_t forwards_ = 0;
};

// The wrapper itself: any overload of the module's forward.
template <class Module>
class UnitCall : public Module, public UnitBase {
 public:
  using Module::Module;

  template <class... Arguments>
  auto call(Arguments&&... arguments) {
    using Output = decltype(Module::forward(std::forward<Arguments>(arguments)...));
    static_assert(TensorOutput<Output>,
                  "a Unit's forward must return a tensor, or a pair, tuple, vector, array, map or "
                  "optional of such; for another type specialise lockstep::TensorsIn (outputs.h)");
    entered();
    return Module::forward(std::forward<Arguments>(arguments)...);
  }
};

// Adds the module's own forward where it has one signature, and a template where it has several.
template <class Module, class Forward = void>
class UnitForward : public UnitCall<Module> {
 public:
  using UnitCall<Module>::UnitCall;
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return this->call(std::forward<Arguments>(arguments)...);
  }
};
template <class Module, class Class, class Output, class... Arguments>
class UnitForward<Module, Output (Class::*)(Arguments...)> : public UnitCall<Module> {
 public:
  using UnitCall<Module>::UnitCall;
  Output forward(Arguments... arguments) {
    return this->call(std::forward<Arguments>(arguments)...);
  }
};
template <class Module, class Class, class Output, class... Arguments>
class UnitForward<Module, Output (Class::*)(Arguments...) const>
    : public UnitForward<Module, Output (Class::*)(Arguments...)> {
 public:
  using UnitForward<Module, Output (Class::*)(Arguments...)>::UnitForward;
};

template <class Module>
struct ForwardOf {
  using Type = void;
};
template <class Module>
requires requires { &Module::forward; }
struct ForwardOf<Module> {
  using Type = decltype(&Module::forward);
};

template <class Module>
class UnitImpl : public UnitForward<Module, typename ForwardOf<Module>::Type> {
 public:
  using UnitForward<Module, typename ForwardOf<Module>::Type>::UnitForward;

  // torch::nn::Cloneable would make a Module that is no unit.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override {
    const std::shared_ptr<torch::nn::Module> plain = Module::clone(device);
    if constexpr (std::is_copy_constructible_v<Module> && std::is_copy_assignable_v<Module>) {
      auto copy = std::make_shared<UnitImpl>(*this);
      static_cast<Module&>(*copy) = dynamic_cast<const Module&>(*plain);
      return copy;
    } else {
      return plain;
    }
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
    return this->impl_->call(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace lockstep
