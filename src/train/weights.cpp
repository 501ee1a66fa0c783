#include "train/weights.h"

#include "base/invariant.h"
#include "base/quantity.h"
#include "lockstep/error.h"
#include "lockstep/unit.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

constexpr const char* kModelKey = "model";
constexpr const char* kSequenceKey = "sequence";
constexpr const char* kConfigurationKey = "configuration";
constexpr const char* kTokenizerKey = "tokenizer";
constexpr const char* kTokenizerIdentityKey = "tokenizer_identity";

// By name, in bytewise order.
using Parameters = std::map<std::string, torch::Tensor>;

Parameters parameters_of(const torch::nn::Module& model) {
  Parameters result;
  for (const auto& item : model.named_parameters()) {
    result.emplace(item.key(), item.value().detach());
  }
  return result;
}

// What stands before a parameter's values.
void begin_update(Sha256& hash, const std::string& name, const torch::Tensor& tensor) {
  std::vector<std::int64_t> shape{tensor.dim()};
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  hash.update(name.c_str(), name.size() + 1);
  hash.update(shape.data(), shape.size() * sizeof(std::int64_t));
}

std::optional<std::uint64_t> identity_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

bool all_f32(const Parameters& tensors) {
  return std::ranges::all_of(
      tensors, [](const auto& entry) { return entry.second.scalar_type() == torch::kFloat32; });
}

std::string shape_text(torch::IntArrayRef shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

void load_one(const checkpoint::SafetensorsFile& file, const std::string& name,
              const torch::Tensor& parameter) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) {
    throw Error(file.path() + ": has no parameter '" + name + "'; is it of this model?");
  }
  const checkpoint::NamedTensor& saved = found->second;
  if (torch::IntArrayRef(saved.shape) != parameter.sizes() || saved.dtype != Dtype::f32) {
    throw Error(file.path() + ": parameter '" + name + "': expected f32 " +
                shape_text(parameter.sizes()) + ", found " + std::string(name_of(saved.dtype)) +
                " " + shape_text(saved.shape));
  }
  std::memcpy(parameter.mutable_data_ptr(), saved.data, static_cast<std::size_t>(saved.bytes()));
}

}  // namespace

WeightDigests digest_weights(const Parallel& parallel, WeightsFile* file) {
  const Gathered gathered(parallel.module());
  const Parameters parameters = parameters_of(parallel.module());
  // In f32 the parameters are the full weights; hashing them again would show nothing new.
  const bool same = all_f32(parameters);
  Sha256 full;
  Sha256 held;
  for (const auto& [name, parameter] : parameters) {
    begin_update(full, name, parameter);
    parallel.visit_full_parameter(name, [&](const torch::Tensor& piece) {
      full.update(piece.const_data_ptr(), piece.nbytes());
      if (file != nullptr) {
        file->add(piece);
      }
    });
    if (!same) {
      begin_update(held, name, parameter);
      held.update(parameter.const_data_ptr(), parameter.nbytes());
    }
  }
  WeightDigests digests;
  digests.weights = full.finish();
  digests.parameters = same ? digests.weights : held.finish();
  return digests;
}

void verify_replicas(Group& group, const WeightDigests& mine) {
  constexpr std::size_t kBytes = 2 * sizeof(Digest);
  static_assert(sizeof(WeightDigests) == kBytes);
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<WeightDigests> all(ranks);
  WeightDigests sent = mine;
  group
      .all_gather(Span(&sent, kBytes, Dtype::u8),
                  Span(all.data(), static_cast<std::int64_t>(kBytes * ranks), Dtype::u8),
                  {.name = "weight hashes"})
      .wait();
  std::string differing;
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    const bool weights = all[rank].weights != all[0].weights;
    if (weights || all[rank].parameters != all[0].parameters) {
      differing += ", rank " + std::to_string(rank) + " has " +
                   hex(weights ? all[rank].weights : all[rank].parameters) +
                   (weights ? "" : " (its parameters, in their own dtype)");
    }
  }
  if (!differing.empty()) {
    throw Error("replicas differ after training: rank 0 has " + hex(all[0].weights) + differing +
                "; the weights of this run can't be trusted: run again, and report it if it "
                "happens twice");
  }
}

WeightsFile::WeightsFile(const std::string& path, const WeightsOrigin& origin,
                         const torch::nn::Module& model) {
  std::vector<checkpoint::NamedTensor> tensors;
  for (const auto& [name, parameter] : parameters_of(model)) {
    tensors.push_back({name, Dtype::f32, parameter.sizes().vec(), nullptr});
  }
  const checkpoint::SafetensorsImage image(
      std::move(tensors), {{"format", "pt"},
                           {kModelKey, origin.model},
                           {kSequenceKey, std::to_string(origin.sequence)},
                           {kConfigurationKey, origin.configuration},
                           {kTokenizerKey, origin.tokenizer},
                           {kTokenizerIdentityKey, std::to_string(origin.tokenizer_identity)}});
  try {
    file_.emplace(path);
    file_->write(image.head());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void WeightsFile::add(const torch::Tensor& elements) {
  LOCKSTEP_INVARIANT(elements.element_size(), ==, 4);
  if (failure_) {
    return;
  }
  try {
    file_->write(elements.const_data_ptr(), static_cast<std::int64_t>(elements.nbytes()));
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void WeightsFile::publish() {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  file_->publish();
}

checkpoint::SafetensorsFile open_weights(const std::string& run_directory) {
  const std::string path = run_directory + "/weights.safetensors";
  if (!std::filesystem::exists(path)) {
    throw UsageError("--run " + run_directory +
                     ": has no weights.safetensors; name the run folder of a finished lockstep "
                     "train");
  }
  return checkpoint::SafetensorsFile(path);
}

WeightsOrigin origin_of(const checkpoint::SafetensorsFile& file) {
  const auto text = [&](const char* key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? std::string() : found->second;
  };
  const auto sequence = quantity::whole(text(kSequenceKey));
  const auto identity = identity_of(text(kTokenizerIdentityKey));
  const WeightsOrigin origin{text(kModelKey), sequence.value_or(0), text(kConfigurationKey),
                             text(kTokenizerKey), identity.value_or(0)};
  if (origin.model.empty() || origin.sequence < 1 || origin.configuration.empty() ||
      origin.tokenizer.empty() || !identity) {
    throw UsageError(file.path() +
                     ": does not say of which model it is and how it was trained; expected a file "
                     "that lockstep train wrote");
  }
  return origin;
}

void load_weights(const checkpoint::SafetensorsFile& file, torch::nn::Module& model) {
  for (const auto& [name, parameter] : parameters_of(model)) {
    load_one(file, name, parameter);
  }
}

}  // namespace lockstep::train
