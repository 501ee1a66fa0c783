// What `lockstep train` was asked to do: the command line after checking. No LibTorch here, so that
// the `lockstep` program can refuse a bad command line in milliseconds.
#pragma once

#include "lockstep/stage.h"

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::train {

enum class PrecisionName : std::uint8_t { f32, bf16 };
enum class TransportName : std::uint8_t { automatic, shm, mpi };
enum class OptimizerName : std::uint8_t { adamw, sgd };

struct Options {
  std::string model = "gpt2-tiny";  // a name, folder or config.json of models/catalogue.h
  std::string data = "text";        // a file, or "text" for the plays that set-up prepared
  std::string tokenizer;            // as data/tokenizer.h opens it; empty: see tokenizer_spec()
  Stage stage = Stage::ddp;
  PrecisionName precision = PrecisionName::f32;
  int ranks = 1;

  std::int64_t micro_batch = 2;  // sequences in one micro-batch of one rank
  std::int64_t sequence = 256;   // tokens of one sequence
  std::int64_t accumulate = 1;   // micro-batches per rank and step (k)
  std::int64_t steps = 20;       // in total; 0 reports the initial weights
  std::int64_t seed = 1;

  double dropout = 0.0;
  OptimizerName optimizer = OptimizerName::adamw;
  double learning_rate = 3e-4;
  double momentum = 0.0;               // of sgd
  std::optional<std::int64_t> warmup;  // steps; default min(100, steps / 10)
  double weight_decay = 0.1;
  double clip = 1.0;  // norm to clip to; 0 turns clipping off

  // Where several micro-batches add up; default: in the shard where the stage can.
  std::optional<bool> accumulate_in_shard;
  std::optional<bool> reshard;              // of zero3: units after their forward; default no
  bool share_parameters = false;            // one copy for all ranks of the host
  std::optional<std::int64_t> unit_blocks;  // of zero3; default 1
  double bucket_mb = 25.0;                  // 0 = one collective per parameter
  bool overlap = true;
  TransportName transport = TransportName::automatic;  // shm and automatic are one, on one host
  bool recompute = false;                              // blocks' activations, in backward
  bool reproducible = false;
  std::optional<int> threads;  // compute threads of a rank; default: what the launcher shared out
  double deadline_s = 300.0;
  std::optional<std::int64_t> device_memory;  // bytes of a rank; default: what the host has
  bool force = false;                         // try what doesn't fit

  std::int64_t eval_every = 0;    // steps; 0 = only at the end, when eval_batches > 0
  std::int64_t eval_batches = 8;  // micro-batches of validation data each time; 0 = none
  std::int64_t sample_bytes = 0;  // tokens to generate and print at the end

  std::string checkpoint;               // folder of checkpoints; empty: none are saved
  std::int64_t checkpoint_every = 0;    // steps; 0 = only at the last one
  std::int64_t keep = 0;                // newest checkpoints; 0 = all
  bool resume = false;                  // from the newest one in `checkpoint`
  std::optional<std::int64_t> stop_at;  // step to save and stop at; default: steps

  std::string run_directory;  // empty: runs/<date>-<model>-<stage> in the working directory
  std::string report;         // empty: only run_directory/report.json
  std::string trace;          // empty: no trace

  // Ranks share no memory, though they may be on one host.
  bool over_network() const { return transport == TransportName::mpi && ranks > 1; }
  // k·P micro-batches, the leaves of the summation tree.
  std::int64_t leaves() const { return accumulate * ranks; }
  std::int64_t warmup_steps() const;
  // `tokenizer`; when it is empty that of a model folder with a tokenizer.json, else "bytes".
  std::string tokenizer_spec() const;
};

// Checks what hangs on several options or can be known beforehand. Throws UsageError naming the
// option and the fix.
void check(const Options& options);

// The options as the run folder's config.toml, which `--config` reads back to the same options.
std::string to_toml(const Options& options);

// What `lockstep generate` was asked to do.
struct GenerateOptions {
  std::string run_directory;  // of a finished `lockstep train`
  std::string prompt;         // may be empty
  std::int64_t bytes = 200;   // to generate behind the prompt
  std::uint64_t seed = 1;
  double temperature = 1.0;  // divides the logits; 0 takes the likeliest byte each time
};

// Throws UsageError naming the option and the fix.
void check(const GenerateOptions& options);

// What `lockstep checkpoint export` was asked to do.
struct ExportOptions {
  std::string run_directory;  // of a finished `lockstep train`
  std::string folder;         // to write; new or empty
};

// Throws UsageError naming the option and the fix.
void check(const ExportOptions& options);

}  // namespace lockstep::train
