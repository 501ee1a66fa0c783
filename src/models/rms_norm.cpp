#include "models/rms_norm.h"

#include "base/invariant.h"

#include <ATen/Parallel.h>

#include <array>
#include <cmath>

namespace lockstep::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows × columns of x, contiguous, and what each row is multiplied by.
template <class T>
struct Rows {
  const T* x;
  float* scale;  // [rows]: 1 / √(mean of x² + ε)
  const float* weight;
  std::int64_t rows;
  std::int64_t columns;
};

// Half open.
struct Columns {
  std::int64_t begin;
  std::int64_t end;
};

// The sum of term(0) … term(count−1) in fixed lanes, so that it is fast and its bits hang on
// nothing else.
template <class Term>
float summed(std::int64_t count, const Term& term) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> lanes{};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] += term(i + lane);
    }
  }
  float sum = 0;
  for (const float lane : lanes) {
    sum += lane;
  }
  for (std::int64_t i = whole; i < count; ++i) {
    sum += term(i);
  }
  return sum;
}

template <class T>
void normalise(const Rows<T>& in, std::int64_t row, float epsilon, T* all) {
  const T* x = in.x + row * in.columns;
  T* y = all + row * in.columns;
  const auto square = [x](std::int64_t i) {
    const auto value = static_cast<float>(x[i]);
    return value * value;
  };
  const float mean = summed(in.columns, square) / static_cast<float>(in.columns);
  const float scale = 1.0f / std::sqrt(mean + epsilon);
  in.scale[row] = scale;
  for (std::int64_t i = 0; i < in.columns; ++i) {
    y[i] = static_cast<T>(static_cast<float>(x[i]) * scale * in.weight[i]);
  }
}

// The gradient of a row of x: with g = sent · weight and n = x · scale it is
// scale · (g − n · mean of g·n).
template <class T>
void send_back(const Rows<T>& in, std::int64_t row, const T* all_sent, T* all_gradients) {
  const T* x = in.x + row * in.columns;
  const T* sent = all_sent + row * in.columns;
  T* gradient = all_gradients + row * in.columns;
  const float scale = in.scale[row];
  const auto wanted = [&](std::int64_t i) { return static_cast<float>(sent[i]) * in.weight[i]; };
  const auto normal = [&](std::int64_t i) { return static_cast<float>(x[i]) * scale; };
  const float mean = summed(in.columns, [&](std::int64_t i) { return wanted(i) * normal(i); }) /
                     static_cast<float>(in.columns);
  for (std::int64_t i = 0; i < in.columns; ++i) {
    gradient[i] = static_cast<T>(scale * (wanted(i) - normal(i) * mean));
  }
}

// Adds over the rows, in their order: the bits do not hang on how columns are shared out.
template <class T>
void add_columns(const Rows<T>& in, const T* sent, const Columns& columns, float* gradient) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const T* x = in.x + row * in.columns;
    const T* received = sent + row * in.columns;
    const float scale = in.scale[row];
    for (std::int64_t i = columns.begin; i < columns.end; ++i) {
      gradient[i] += static_cast<float>(received[i]) * (static_cast<float>(x[i]) * scale);
    }
  }
}

template <class T>
Rows<T> rows_of(const Tensor& x, const Tensor& weight, const Tensor& scale) {
  return {.x = x.const_data_ptr<T>(),
          .scale = scale.mutable_data_ptr<float>(),
          .weight = weight.const_data_ptr<float>(),
          .rows = scale.numel(),
          .columns = weight.numel()};
}

template <class Body>
void for_each_row(std::int64_t rows, const Body& body) {
  constexpr std::int64_t kRowsOfAThread = 16;
  at::parallel_for(0, rows, kRowsOfAThread, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      body(row);
    }
  });
}

template <class T>
Tensor normalised(const Tensor& x, const Tensor& weight, const Tensor& scale, float epsilon) {
  const Rows<T> in = rows_of<T>(x, weight, scale);
  Tensor y = torch::empty_like(x);
  T* const to = y.mutable_data_ptr<T>();
  for_each_row(in.rows, [&](std::int64_t row) { normalise(in, row, epsilon, to); });
  return y;
}

struct Gradients {
  Tensor x;
  Tensor weight;  // f32
};

template <class T>
Gradients gradients_of(const Rows<T>& in, const Tensor& sent) {
  const T* const from = sent.const_data_ptr<T>();
  Gradients result{torch::empty_like(sent), torch::zeros({in.columns}, torch::kFloat32)};
  T* const to = result.x.mutable_data_ptr<T>();
  for_each_row(in.rows, [&](std::int64_t row) { send_back(in, row, from, to); });
  constexpr std::int64_t kColumnsOfAThread = 64;
  float* const sums = result.weight.mutable_data_ptr<float>();
  at::parallel_for(0, in.columns, kColumnsOfAThread, [&](std::int64_t begin, std::int64_t end) {
    add_columns(in, from, {begin, end}, sums);
  });
  return result;
}

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        double epsilon) {
    const Tensor rows = x.contiguous();
    const Tensor scale = torch::empty({rows.numel() / weight.numel()}, torch::kFloat32);
    context->save_for_backward({rows, weight, scale});
    const auto added = static_cast<float>(epsilon);
    return x.scalar_type() == torch::kFloat32
               ? normalised<float>(rows, weight, scale, added)
               : normalised<c10::BFloat16>(rows, weight, scale, added);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &scale = saved[2];
    const Tensor sent = gradients[0].contiguous();
    const Gradients result = x.scalar_type() == torch::kFloat32
                                 ? gradients_of(rows_of<float>(x, weight, scale), sent)
                                 : gradients_of(rows_of<c10::BFloat16>(x, weight, scale), sent);
    return {result.x, result.weight, Tensor()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const bool known = x.scalar_type() == torch::kFloat32 || x.scalar_type() == torch::kBFloat16;
  LOCKSTEP_INVARIANT(known, ==, true);
  LOCKSTEP_INVARIANT(static_cast<int>(weight.scalar_type()), ==, static_cast<int>(torch::kFloat32));
  LOCKSTEP_INVARIANT(x.size(-1), ==, weight.numel());
  return RmsNorm::apply(x, weight, epsilon);
}

}  // namespace lockstep::models
