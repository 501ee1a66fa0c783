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

#include "lockstep/error.h"
#include "lockstep/outputs.h"
#include "lockstep/recompute.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep {

class UnitBase;

// Who is told of a unit's forward passes: the engine.
class UnitObserver {
 public:
  virtual ~UnitObserver() = default;
  virtual void before_forward(const UnitBase& unit) = 0;
  // With the tensors among its arguments and in its output.
  virtual void after_forward(const UnitBase& unit, const parallel::Tensors& inputs,
                             const parallel::Tensors& outputs) = 0;
  // It ended, and there will be no backward.
  virtual void end_forward(const UnitBase& unit) noexcept = 0;
};

// The engine's view of a unit, whatever module it wraps.
class UnitBase {
 public:
  UnitBase() = default;
  UnitBase(const UnitBase&) noexcept {}
  UnitBase& operator=(const UnitBase&) noexcept { return *this; }
  virtual ~UnitBase() = default;
  // Forward passes of this object so far; those that backward repeats are not counted.
  std::int64_t forwards() const { return forwards_; }

  // For ParallelOptions::recompute: from now on forward keeps no activations but repeats itself in
  // backward, which calls `before_backward`, while it is set, first. nullptr ends it. Errors call
  // the unit by its name in the module.
  void recompute(std::shared_ptr<const std::function<void()>> before_backward, std::string name) {
    before_backward_ = std::move(before_backward);
    recomputed_as_ = std::move(name);
  }
  bool recomputing() const { return before_backward_ != nullptr; }
  // nullptr: nobody any more. It must outlive its observing.
  void observe(UnitObserver* observer) { observer_ = observer; }
  UnitObserver* observer() const { return observer_; }

 protected:
  void entered() { forwards_ += parallel::in_second_pass() ? 0 : 1; }
  bool recomputes() const { return recomputing() && torch::GradMode::is_enabled(); }
  const std::shared_ptr<const std::function<void()>>& before_backward() const {
    return before_backward_;
  }
  const std::string& recomputed_as() const { return recomputed_as_; }

 private:
  std::int64_t forwards_ = 0;
  UnitObserver* observer_ = nullptr;
  std::shared_ptr<const std::function<void()>> before_backward_;
  std::string recomputed_as_;
};

// Keeps the parameters of `module` and of all units in it readable while it lives, where the engine
// frees them between forward and backward (Reshard::always): for code that reads them outside of a
// unit's forward. The engine must outlive it.
class Gathered {
 public:
  explicit Gathered(const torch::nn::Module& module);
  ~Gathered();
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;

 private:
  void gather(const torch::nn::Module& module);

  std::vector<const UnitBase*> units_;
};

namespace parallel {

// Tells a ShardedInit (sharded_init.h) in scope that the constructor of a unit's module has ended.
void unit_made(torch::nn::Module& unit);

// The tensors among arguments or in an output; what TensorsIn doesn't know has none.
template <class Visit, class... Values>
void for_each_known_tensor(const Visit& visit, Values&... values) {
  const auto look = [&visit](auto& value) {
    if constexpr (TensorOutput<decltype(value)>) {
      for_each_tensor(value, visit);
    }
  };
  (look(values), ...);
}

template <class... Values>
Tensors tensors_in(Values&... values) {
  Tensors tensors;
  // Nothing is written, but TensorsIn visits what may be written to.
  for_each_known_tensor([&](const torch::Tensor& tensor) { tensors.push_back(tensor); },
                        const_cast<std::remove_const_t<Values>&>(values)...);
  return tensors;
}

// Does a copy of the type show the same later, when what it was made from is gone?
template <class Type>
inline constexpr bool owns_what_it_shows =
    std::is_copy_constructible_v<Type> && !std::is_pointer_v<Type>;
template <class Element>
inline constexpr bool owns_what_it_shows<c10::ArrayRef<Element>> = false;
template <class Element>
inline constexpr bool owns_what_it_shows<c10::OptionalArrayRef<Element>> = false;
template <class Element, std::size_t extent>
inline constexpr bool owns_what_it_shows<std::span<Element, extent>> = false;
template <>
inline constexpr bool owns_what_it_shows<std::string_view> = false;

inline bool same_tensors(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(
      a, b, [](const torch::Tensor& x, const torch::Tensor& y) { return x.is_same(y); });
}

template <class... Values>
void replace_tensors(const Tensors& tensors, Values&... values) {
  std::size_t next = 0;
  for_each_known_tensor([&](torch::Tensor& tensor) { tensor = tensors.at(next++); }, values...);
}

}  // namespace parallel

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
    if (observer() == nullptr) {
      return pass<Output>(std::forward<Arguments>(arguments)...);
    }
    observer()->before_forward(*this);
    const parallel::Tensors inputs = parallel::tensors_in(arguments...);
    try {
      Output output = pass<Output>(std::forward<Arguments>(arguments)...);
      observer()->after_forward(*this, inputs, parallel::tensors_in(output));
      return output;
    } catch (...) {
      observer()->end_forward(*this);
      throw;
    }
  }

 private:
  template <class Output, class... Arguments>
  Output pass(Arguments&&... arguments) {
    if (!recomputes()) {
      return Module::forward(std::forward<Arguments>(arguments)...);
    }
    if constexpr ((parallel::owns_what_it_shows<std::decay_t<Arguments>> && ...)) {
      return recomputed<Output>(std::forward<Arguments>(arguments)...);
    } else {
      throw UsageError(
          "recompute: the forward of unit '" + recomputed_as() +
          "' is called with an argument that can't be kept for a second pass: a pointer, a view of "
          "other memory (ArrayRef, span, string_view), or what can't be copied; pass a value "
          "(std::vector, std::string), or turn recompute off");
    }
  }

  // Copies of the arguments are kept for the second pass; tensors among them are as they were
  // given, other tensors (in types that TensorsIn does not know) must not need a gradient.
  template <class Output, class... Arguments>
  Output recomputed(Arguments&&... arguments) {
    const auto given = std::make_shared<const std::tuple<std::decay_t<Arguments>...>>(
        std::forward<Arguments>(arguments)...);
    const auto run = [this, given](const parallel::Tensors& inputs) -> Output {
      std::tuple<std::decay_t<Arguments>...> copies = *given;
      return std::apply(
          [this, &inputs](auto&... copy) -> Output {
            parallel::replace_tensors(inputs, copy...);
            Output output = this->Module::forward(static_cast<Arguments&&>(copy)...);
            // Of what was not moved into it.
            if constexpr ((std::is_lvalue_reference_v<Arguments> && ...)) {
              if (!parallel::same_tensors(parallel::tensors_in(copy...), inputs)) {
                throw UsageError("recompute: the forward of unit '" + this->recomputed_as() +
                                 "' changed which tensors are in its arguments, which its caller "
                                 "would not see; return them, or turn recompute off");
              }
            }
            return output;
          },
          copies);
    };
    parallel::RepeatablePass pass{
        recomputed_as(), this->shared_from_this(),
        std::apply([](const auto&... one) { return parallel::tensors_in(one...); }, *given),
        [run](const parallel::Tensors& inputs) {
          Output output = run(inputs);
          return parallel::tensors_in(output);
        },
        before_backward()};
    if (!parallel::needs_gradient(pass)) {
      return run(pass.inputs);
    }
    parallel::PassState state = parallel::note_state(pass.inputs);
    Output output = [&] {
      const torch::NoGradGuard no_graph;
      return run(pass.inputs);
    }();
    const parallel::Tensors outputs = parallel::tensors_in(output);
    parallel::replace_tensors(
        parallel::recompute_in_backward(std::move(pass), std::move(state), outputs), output);
    return output;
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

 private:
  // Initialised behind the bases, so when the module is complete; not in a copy.
  struct Made {
    explicit Made(torch::nn::Module& unit) { parallel::unit_made(unit); }
  };
  Made made_{*this};
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
