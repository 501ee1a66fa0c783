// Which outputs of a module Lockstep can look into: a tensor; pair, tuple, vector, array, map,
// unordered_map and optional of what it can look into. For a type of your own specialise TensorsIn:
//
//   template <>
//   struct lockstep::TensorsIn<Prediction> {
//     static constexpr bool known = true;
//     template <class Visit>
//     static void each(Prediction& output, const Visit& visit) { visit(output.logits); }
//   };
#pragma once

#include <torch/torch.h>

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

template <class Output>
struct TensorsIn {
  static constexpr bool known = false;
};

template <class Output>
concept TensorOutput = TensorsIn<std::remove_cvref_t<Output>>::known;

// Calls visit(tensor) for every tensor in `output`, in order; undefined tensors included.
template <TensorOutput Output, class Visit>
void for_each_tensor(Output& output, const Visit& visit) {
  TensorsIn<std::remove_cvref_t<Output>>::each(output, visit);
}

template <>
struct TensorsIn<torch::Tensor> {
  static constexpr bool known = true;
  template <class Tensor, class Visit>
  static void each(Tensor& output, const Visit& visit) {
    visit(output);
  }
};

template <TensorOutput First, TensorOutput Second>
struct TensorsIn<std::pair<First, Second>> {
  static constexpr bool known = true;
  template <class Pair, class Visit>
  static void each(Pair& output, const Visit& visit) {
    for_each_tensor(output.first, visit);
    for_each_tensor(output.second, visit);
  }
};

template <TensorOutput... Parts>
struct TensorsIn<std::tuple<Parts...>> {
  static constexpr bool known = true;
  template <class Tuple, class Visit>
  static void each(Tuple& output, const Visit& visit) {
    std::apply([&visit](auto&... parts) { (for_each_tensor(parts, visit), ...); }, output);
  }
};

template <TensorOutput Part>
struct TensorsIn<std::optional<Part>> {
  static constexpr bool known = true;
  template <class Optional, class Visit>
  static void each(Optional& output, const Visit& visit) {
    if (output) {
      for_each_tensor(*output, visit);
    }
  }
};

// What sequences share.
struct TensorsInSequence {
  static constexpr bool known = true;
  template <class Sequence, class Visit>
  static void each(Sequence& output, const Visit& visit) {
    for (auto& part : output) {
      for_each_tensor(part, visit);
    }
  }
};

template <TensorOutput Part, class Allocator>
struct TensorsIn<std::vector<Part, Allocator>> : TensorsInSequence {};
template <TensorOutput Part, std::size_t size>
struct TensorsIn<std::array<Part, size>> : TensorsInSequence {};

// What maps share: their values, in the map's order.
struct TensorsInMap {
  static constexpr bool known = true;
  template <class Map, class Visit>
  static void each(Map& output, const Visit& visit) {
    for (auto& [key, part] : output) {
      for_each_tensor(part, visit);
    }
  }
};

template <class Key, TensorOutput Part, class... Rest>
struct TensorsIn<std::map<Key, Part, Rest...>> : TensorsInMap {};
template <class Key, TensorOutput Part, class... Rest>
struct TensorsIn<std::unordered_map<Key, Part, Rest...>> : TensorsInMap {};

}  // namespace lockstep
