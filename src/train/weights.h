// The trained weights as a whole: their hash, the proof that replicas agree, their file.
#pragma once

#include "checkpoint/pending_file.h"
#include "checkpoint/safetensors.h"
#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "train/sha256.h"

#include <torch/torch.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace lockstep::train {

struct WeightDigests {
  // Of the full fp32 weights (the masters under bf16) in bytewise order of their names, each as:
  // its name and a zero byte; the number of dimensions and each dimension as little-endian i64; its
  // values as little-endian f32. Hangs on the weights only, not on stage, ranks or layout.
  Digest weights{};
  // The same over the parameters that forward uses, in their own dtype.
  Digest parameters{};
};

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

// A file of full fp32 weights by name, as safetensors, that is being written; it appears with
// publish(), which also throws what failed before (SystemError naming the file): other ranks wait
// while it is written.
class WeightsFile {
 public:
  // For the parameters of `model`.
  WeightsFile(const std::string& path, const WeightsOrigin& origin, const torch::nn::Module& model);
  // The next elements, contiguous f32: all of each parameter, in bytewise order of the names.
  void add(const torch::Tensor& elements);
  void publish();

 private:
  std::optional<checkpoint::PendingFile> file_;
  std::exception_ptr failure_;
};

// Collective. Of what this rank holds; what the ranks keep in shards is gathered piece by
// piece, and written to `file`, where one is given, on the way.
WeightDigests digest_weights(const Parallel& parallel, WeightsFile* file = nullptr);

// The weights in the folder of a finished run. Throws UsageError when there are none.
checkpoint::SafetensorsFile open_weights(const std::string& run_directory);

// Throws UsageError when the file does not say, so was not written by save_weights().
WeightsOrigin origin_of(const checkpoint::SafetensorsFile& file);

// Copies the weights of a file into an f32 model, in place. Throws Error naming file, parameter,
// expected and found shape when they do not match.
void load_weights(const checkpoint::SafetensorsFile& file, torch::nn::Module& model);

}  // namespace lockstep::train
