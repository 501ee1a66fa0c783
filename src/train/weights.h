// The trained weights as a whole: their hash, the proof that replicas agree, their file.
#pragma once

#include "checkpoint/safetensors.h"
#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "train/sha256.h"

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>

namespace lockstep::train {

// The full fp32 weights by name (the masters under bf16), in bytewise order.
using Weights = std::map<std::string, torch::Tensor>;

// Collective: gathers what the ranks keep in shards; elsewhere views.
Weights full_weights(const Parallel& parallel);

struct WeightDigests {
  // Of the full weights, each as: its name and a zero byte; the number of dimensions and each
  // dimension as little-endian i64; its values as little-endian f32. Hangs on the weights only, not
  // on stage, ranks or layout.
  Digest weights{};
  // The same over the parameters that forward uses, in their own dtype.
  Digest parameters{};
};

// Of what this rank holds; `weights` as full_weights() gives them.
WeightDigests digest_weights(const Weights& weights, const torch::nn::Module& model);

// Collective. Throws Error on every rank, naming ranks and hashes, unless all ranks hold the same
// bits.
void verify_replicas(Group& group, const WeightDigests& mine);

// What a file of weights says about itself, in its metadata.
struct WeightsOrigin {
  std::string model;          // its name or folder in models/catalogue.h
  std::int64_t sequence = 0;  // tokens of the sequences it was trained on
  std::string configuration;  // its config.json
  std::string tokenizer;      // its spec()
  std::uint64_t tokenizer_identity = 0;
};

// Writes the full fp32 weights by name as safetensors. Throws SystemError naming the file.
void save_weights(const std::string& path, const WeightsOrigin& origin, const Weights& weights);

// The weights in the folder of a finished run. Throws UsageError when there are none.
checkpoint::SafetensorsFile open_weights(const std::string& run_directory);

// Throws UsageError when the file does not say, so was not written by save_weights().
WeightsOrigin origin_of(const checkpoint::SafetensorsFile& file);

// Copies the weights of a file into an f32 model, in place. Throws Error naming file, parameter,
// expected and found shape when they do not match.
void load_weights(const checkpoint::SafetensorsFile& file, torch::nn::Module& model);

}  // namespace lockstep::train
