#include "lockstep/batch_norm.h"

#include <algorithm>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace lockstep {
namespace {

// All dimensions but the features'.
std::vector<std::int64_t> other_dimensions(const at::Tensor& x) {
  std::vector<std::int64_t> dimensions{0};
  for (std::int64_t i = 2; i < x.dim(); ++i) {
    dimensions.push_back(i);
  }
  return dimensions;
}

// [features] → [1, features, 1, …], in x's dtype.
at::Tensor per_feature(const at::Tensor& values, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = values.numel();
  return values.to(x.scalar_type()).view(shape);
}

at::Tensor sum_per_feature(const at::Tensor& x) {  // [features], f64
  return x.sum(other_dimensions(x), /*keepdim=*/false, torch::kFloat64);
}

Span span_of(const at::Tensor& values) {
  return {values.mutable_data_ptr(), values.numel(), Dtype::f64};
}

// Over the batches of all ranks; tensors are [features], f64.
struct Statistics {
  double count = 0;  // values per feature
  at::Tensor mean;
  at::Tensor squares;  // of the distances from the mean, summed
};

// [count | mean per feature | squares per feature] of this rank's batch, f64.
at::Tensor local_statistics(const at::Tensor& x) {
  std::int64_t count = x.size(0);
  for (std::int64_t i = 2; i < x.dim(); ++i) {
    count *= x.size(i);
  }
  const at::Tensor mean = sum_per_feature(x) / std::max<std::int64_t>(count, 1);
  const at::Tensor squares = sum_per_feature((x - per_feature(mean, x)).square());
  return torch::cat({torch::full({1}, count, torch::kFloat64), mean, squares});
}

// Plain loops in rank order: a tensor's sum may add in another order on a rank with more threads.
Statistics combine(const at::Tensor& gathered) {  // [ranks, 1 + 2·features]
  const auto ranks = gathered.accessor<double, 2>();
  const std::int64_t features = (gathered.size(1) - 1) / 2;
  Statistics all{.mean = torch::zeros({features}, torch::kFloat64),
                 .squares = torch::zeros({features}, torch::kFloat64)};
  for (std::int64_t r = 0; r < ranks.size(0); ++r) {
    all.count += ranks[r][0];
  }
  auto mean = all.mean.accessor<double, 1>();
  auto squares = all.squares.accessor<double, 1>();
  for (std::int64_t f = 0; f < features; ++f) {
    for (std::int64_t r = 0; r < ranks.size(0); ++r) {
      mean[f] += ranks[r][0] * ranks[r][1 + f] / all.count;
    }
    for (std::int64_t r = 0; r < ranks.size(0); ++r) {
      const double distance = ranks[r][1 + f] - mean[f];
      squares[f] += ranks[r][1 + features + f] + ranks[r][0] * distance * distance;
    }
  }
  return all;
}

Statistics statistics_of_all_ranks(const at::Tensor& x, Group& group) {
  const at::Tensor mine = local_statistics(x);
  const at::Tensor gathered = torch::empty({group.size(), mine.numel()}, torch::kFloat64);
  group.all_gather(span_of(mine), span_of(gathered), {.name = "batch norm forward"}).wait();
  Statistics all = combine(gathered);
  if (all.count < 2) {
    throw UsageError(
        "SyncBatchNorm: expected at least 2 values per feature over all ranks in "
        "training, got " +
        std::to_string(static_cast<std::int64_t>(all.count)) +
        "; give larger batches, or train with eval()");
  }
  return all;
}

// Carries the group from forward to backward, as autograd keeps only values of its own kinds.
struct SharedGroup : torch::CustomClassHolder {
  explicit SharedGroup(std::shared_ptr<Group> held) : group(std::move(held)) {}
  std::shared_ptr<Group> group;
};

// (x − mean)·inverse_std, where mean and inverse_std are those of all ranks' x together.
class Normalise : public torch::autograd::Function<Normalise> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& mean, const at::Tensor& inverse_std, double count,
                            const std::shared_ptr<Group>& group) {
    const at::Tensor normalised = (x - per_feature(mean, x)) * per_feature(inverse_std, x);
    context->save_for_backward({normalised, inverse_std});
    context->saved_data["count"] = count;
    context->saved_data["group"] =
        c10::IValue::make_capsule(c10::make_intrusive<SharedGroup>(group));
    return normalised;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      throw UsageError(
          "SyncBatchNorm has no second derivative: backward with create_graph passes through it; "
          "use torch::nn::BatchNorm, or keep it out of what is differentiated twice");
    }
    const auto saved = context->get_saved_variables();
    const at::Tensor& normalised = saved[0];
    const at::Tensor& gradient = gradients[0];
    const at::Tensor sums = torch::cat(
        {sum_per_feature(gradient), sum_per_feature(gradient * normalised)});  // [2·features]
    const auto held = context->saved_data["group"].toCapsule();
    static_cast<SharedGroup&>(*held)
        .group->all_reduce(span_of(sums), {.name = "batch norm backward"})
        .wait();
    const auto means = (sums / context->saved_data["count"].toDouble()).chunk(2);
    const at::Tensor centred =
        gradient - per_feature(means[0], gradient) - normalised * per_feature(means[1], gradient);
    return {centred * per_feature(saved[1], gradient), {}, {}, {}, {}};
  }
};

// Of what LibTorch calls momentum, which may be absent: then each batch counts equally.
double weight_of_batch(const torch::nn::BatchNormOptions& options, const at::Tensor& batches) {
  return options.momentum().has_value() ? *options.momentum() : 1.0 / batches.item<double>();
}

// running ← (1 − weight)·running + weight·value
void blend(at::Tensor& running, const at::Tensor& value, double weight) {
  running.mul_(1 - weight).add_(value.to(running.scalar_type()), weight);
}

}  // namespace

template <std::size_t dimensions, class Derived>
SyncBatchNormImplBase<dimensions, Derived>::SyncBatchNormImplBase(
    const torch::nn::BatchNormOptions& batch_norm, std::shared_ptr<Group> group)
    : Base(batch_norm), group_(std::move(group)) {
  if (!group_) {
    throw UsageError(
        "SyncBatchNorm: expected a group, got none; give one of its own, as "
        "world.split(0, world.rank()) makes");
  }
}

template <std::size_t dimensions, class Derived>
torch::Tensor SyncBatchNormImplBase<dimensions, Derived>::forward(const torch::Tensor& input) {
  _check_input_dim(input);
  const torch::nn::BatchNormOptions& batch_norm = this->options;
  if (!this->is_training()) {
    return torch::nn::functional::detail::batch_norm(
        input, this->running_mean, this->running_var, this->weight, this->bias,
        /*training=*/!batch_norm.track_running_stats(), /*momentum=*/0.0, batch_norm.eps());
  }
  const bool narrow = input.element_size() < 4;
  const at::Tensor x = narrow ? input.to(torch::kFloat32) : input;
  Statistics all;
  {
    const torch::NoGradGuard no_grad;
    all = statistics_of_all_ranks(x, *group_);
    if (this->running_mean.defined()) {
      this->num_batches_tracked += 1;
      const double share = weight_of_batch(batch_norm, this->num_batches_tracked);
      blend(this->running_mean, all.mean, share);
      blend(this->running_var, all.squares / (all.count - 1), share);
    }
  }
  const at::Tensor inverse_std = (all.squares / all.count + batch_norm.eps()).rsqrt();
  const at::Tensor normalised = Normalise::apply(x, all.mean, inverse_std, all.count, group_);
  if (!batch_norm.affine()) {
    // What backward keeps must survive an in-place activation on what is returned.
    return normalised.to(input.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  return (normalised * per_feature(this->weight, x) + per_feature(this->bias, x))
      .to(input.scalar_type());
}

template <std::size_t dimensions, class Derived>
void SyncBatchNormImplBase<dimensions, Derived>::_check_input_dim(const torch::Tensor& input) {
  constexpr std::int64_t kFull = dimensions + 2;
  const bool flat = dimensions == 1 && input.dim() == 2;
  const std::int64_t features = this->options.num_features();
  if ((input.dim() != kFull && !flat) || input.size(1) != features) {
    throw UsageError("SyncBatchNorm" + std::to_string(dimensions) + "d: expected " +
                     (dimensions == 1 ? "2 or 3" : std::to_string(kFull)) +
                     " dimensions, [samples, " + std::to_string(features) + ", …], got " +
                     c10::str(input.sizes()));
  }
}

template <std::size_t dimensions, class Derived>
void SyncBatchNormImplBase<dimensions, Derived>::pretty_print(std::ostream& stream) const {
  stream << "lockstep::SyncBatchNorm" << dimensions << "d(" << this->options.num_features()
         << ", eps=" << this->options.eps() << ", ranks=" << group_->size() << ")";
}

template <std::size_t dimensions, class Derived>
void SyncBatchNormImplBase<dimensions, Derived>::adopt_buffers(const torch::Tensor& mean,
                                                               const torch::Tensor& var,
                                                               const torch::Tensor& batches) {
  if (mean.defined()) {
    this->running_mean.set_data(mean);
    this->running_var.set_data(var);
    this->num_batches_tracked.set_data(batches);
  }
}

template class SyncBatchNormImplBase<1, SyncBatchNorm1dImpl>;
template class SyncBatchNormImplBase<2, SyncBatchNorm2dImpl>;
template class SyncBatchNormImplBase<3, SyncBatchNorm3dImpl>;

}  // namespace lockstep
