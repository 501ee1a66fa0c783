#include "plan/flat_buckets.h"

#include "base/bucket_plan.h"
#include "base/range.h"
#include "lockstep/error.h"

#include <map>
#include <string>

namespace lockstep::plan {
namespace {

void check_powers_of_two(const Training& training) {
  if (training.reproducible &&
      !(is_power_of_two(training.ranks) && is_power_of_two(training.micro_batches))) {
    throw UsageError("reproducible needs powers of two, got " + std::to_string(training.ranks) +
                     " ranks and " + std::to_string(training.micro_batches) +
                     " micro-batches; change them or leave reproducible off");
  }
}

void check(const Training& training) {
  if (!is_built(training.stage)) {
    throw UsageError("stage " + std::string(name_of(training.stage)) +
                     " is not built yet; plan with single, ddp, zero1, zero2 or zero3");
  }
  if (training.ranks < 1 || training.micro_batches < 1) {
    throw UsageError("a plan needs at least 1 rank and 1 micro-batch, got " +
                     std::to_string(training.ranks) + " and " +
                     std::to_string(training.micro_batches));
  }
  if (training.stage == Stage::single && training.ranks != 1) {
    throw UsageError("stage single trains on one rank, got " + std::to_string(training.ranks) +
                     "; plan with ddp");
  }
  if (training.unit_blocks < 1) {
    throw UsageError("unit_blocks: expected at least 1, got " +
                     std::to_string(training.unit_blocks));
  }
  if (!(training.bucket_mb >= 0)) {
    throw UsageError("bucket_mb: expected 0 or more, got " + std::to_string(training.bucket_mb));
  }
  check_powers_of_two(training);
}

void check(const Parameter& parameter) {
  if (parameter.elements < 0) {
    throw UsageError("a parameter of " + std::to_string(parameter.elements) + " elements");
  }
  if (parameter.trainable && !is_floating(parameter.dtype)) {
    throw UsageError("a trainable parameter of dtype " + std::string(name_of(parameter.dtype)) +
                     ": expected a float");
  }
}

Dtype gradient_dtype(Dtype parameter, const Training& training) {
  return training.micro_batches > 1 && size_of(parameter) == 2 ? Dtype::f32 : parameter;
}

}  // namespace

FlatBuckets flat_buckets(std::span<const Parameter> parameters, const Training& training) {
  check(training);
  std::vector<Parameter> trainable;
  std::vector<std::int64_t> bytes;
  std::vector<std::size_t> units;
  for (const Parameter& parameter : parameters) {
    check(parameter);
    if (parameter.trainable) {
      trainable.push_back(parameter);
      bytes.push_back(parameter.elements * size_of(parameter.dtype));
      units.push_back(parameter.unit);
    }
  }
  FlatBuckets buckets;
  const auto planned = training.stage == Stage::zero3
                           ? plan_units(units, training.unit_blocks)
                           : plan_buckets(bytes, bucket_sizes_of(training.bucket_mb));
  for (const auto& members : planned) {
    std::map<Dtype, std::vector<std::int64_t>> sizes;
    for (const std::size_t member : members) {
      sizes[trainable[member].dtype].push_back(trainable[member].elements);
    }
    std::vector<Flat>& bucket = buckets.emplace_back();
    for (const auto& [dtype, elements] : sizes) {
      const Dtype held = gradient_dtype(dtype, training);
      bucket.push_back({dtype, held, across_first(training) ? dtype : held,
                        FlatLayout(elements, training.ranks)});
    }
  }
  return buckets;
}

}  // namespace lockstep::plan
