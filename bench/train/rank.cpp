// lockstep-bench-train-rank: one rank of one launch of `lockstep bench train`. Trains on random
// tokens, every step between two barriers, and leaves the times and what proves the result.
#include "bench/common/program.h"
#include "bench/train/rank_options.h"
#include "checkpoint/pending_file.h"
#include "data/byte_tokenizer.h"
#include "lockstep/error.h"
#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "models/parameter_list.h"
#include "models/registry.h"
#include "train/batches.h"
#include "train/memory.h"
#include "train/weights.h"

#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// One value per step, in ms; a step from before its first barrier to behind its second.
struct Times {
  std::vector<double> step;
  std::vector<double> forward;
  std::vector<double> backward;  // the exchange's end included
  std::vector<double> update;    // and the second barrier
  std::vector<double> exposed;
};

std::shared_ptr<models::LanguageModel> make_model(const RankOptions& options) {
  torch::manual_seed(0);
  return models::make_model(models::config_of(options.model, data::kByteVocabulary));
}

// Without the other ranks.
bool trains_alone(const RankOptions& options) {
  return options.stage == "apart" || options.stage == "threads";
}

Stage stage_of(const RankOptions& options) {
  const auto stage = trains_alone(options) ? Stage::single : stage_named(options.stage);
  if (!stage) {
    throw UsageError("--stage " + options.stage +
                     ": expected apart, threads, ddp, zero1, zero2 or zero3");
  }
  return *stage;
}

ParallelOptions engine_options(const RankOptions& options) {
  ParallelOptions result;
  result.stage = stage_of(options);
  if (options.precision == "bf16") {
    result.precision = Precision::bf16_mixed(models::keep_f32);
  }
  result.bucket_mb = options.dials.bucket_mb.value_or(result.bucket_mb);
  result.unit_blocks = options.dials.unit_blocks.value_or(result.unit_blocks);
  result.overlap = options.dials.overlap.value_or(result.overlap);
  return result;
}

class Training {
 public:
  Training(const RankOptions& options, Group& world)
      : options_(options),
        meeting_(std::move(*world.split(0, world.rank()))),
        alone_(Group::alone()),
        model_(make_model(options)),
        parallel_(model_, trains_alone(options) ? alone_ : world, engine_options(options)),
        optimizer_(parallel_.adamw({.lr = 1e-4})) {
    for (std::int64_t batch = 0; batch < options.batches; ++batch) {
      const auto seed = static_cast<std::uint64_t>(world.rank() + batch);
      generators_.push_back(torch::make_generator<at::CPUGeneratorImpl>(seed));
    }
  }

  void step() {
    const train::Batch batch = random_tokens();
    const auto start = Clock::now();
    meeting_.barrier();
    const auto begun = Clock::now();
    auto forwarded = begun;
    torch::Tensor loss;
    for ([[maybe_unused]] const MicroStep& micro : parallel_.micro_steps(1)) {
      loss = model_->loss(batch.tokens, batch.targets);  // a scalar
      forwarded = Clock::now();
      loss.backward();
    }
    const auto exchanged = Clock::now();
    optimizer_.step();
    meeting_.barrier();
    const auto end = Clock::now();
    times_.step.push_back(ms_between(start, end));
    times_.forward.push_back(ms_between(begun, forwarded));
    times_.backward.push_back(ms_between(forwarded, exchanged));
    times_.update.push_back(ms_between(exchanged, end));
    times_.exposed.push_back(parallel_.last_step().exposed_ms);
    losses_.push_back(loss.item<double>());
  }

  // Bytes resident on each rank where a step holds most: behind forward and behind backward.
  // Takes an untimed step, since looking takes time.
  std::vector<std::int64_t> resident_of_ranks() {
    const train::Batch batch = random_tokens();
    std::int64_t most = 0;
    for ([[maybe_unused]] const MicroStep& micro : parallel_.micro_steps(1)) {
      const torch::Tensor loss = model_->loss(batch.tokens, batch.targets);
      most = train::resident_bytes();
      loss.backward();
      most = std::max(most, train::resident_bytes());
    }
    optimizer_.step();
    std::vector<std::int64_t> all(static_cast<std::size_t>(meeting_.size()));
    meeting_.all_gather(Span(std::span(&most, 1)), Span(std::span(all))).wait();
    return all;
  }

  // Throws Error unless the losses are finite and, in a stage that says so, all ranks end with the
  // same weights. Returns the weights' hash.
  std::string verify() {
    for (const double loss : losses_) {
      if (!std::isfinite(loss)) {
        throw Error("stage " + options_.stage + " on rank " + std::to_string(meeting_.rank()) +
                    ": a loss is not finite; its times mean nothing");
      }
    }
    const train::WeightDigests digests = train::digest_weights(parallel_);
    if (!trains_alone(options_)) {
      train::verify_replicas(meeting_, digests);
    }
    return train::hex(digests.weights);
  }

  // Per step, over all ranks. Collective.
  std::vector<double> mean_losses() {
    const auto ranks = static_cast<std::size_t>(meeting_.size());
    std::vector<double> all(ranks * losses_.size());
    meeting_.all_gather(Span(std::span(losses_)), Span(std::span(all))).wait();
    std::vector<double> means(losses_.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      means[i % losses_.size()] += all[i] / static_cast<double>(ranks);
    }
    return means;
  }

  const Times& times() const { return times_; }
  const std::vector<double>& losses() const { return losses_; }
  // Of the last step.
  std::int64_t collectives() const { return parallel_.last_step().collectives; }
  std::int64_t parameters() const { return model_->facts().parameters; }
  bool writes_result() const { return meeting_.rank() == 0; }

 private:
  train::Batch random_tokens() {
    std::vector<torch::Tensor> rows;
    for (const at::Generator& generator : generators_) {
      rows.push_back(torch::randint(0, model_->facts().vocabulary,
                                    {options_.micro_batch, options_.sequence + 1}, generator,
                                    torch::kInt64));
    }
    const torch::Tensor both = torch::cat(rows);   // [B · batches, T + 1]
    return {both.narrow(1, 0, options_.sequence),  // [B · batches, T]
            both.narrow(1, 1, options_.sequence).contiguous()};
  }

  RankOptions options_;
  Group meeting_;
  Group alone_;
  std::shared_ptr<models::LanguageModel> model_;
  Parallel parallel_;
  AdamW optimizer_;
  std::vector<at::Generator> generators_;  // one per batch
  Times times_;
  std::vector<double> losses_;
};

void train_and_tell(const RankOptions& options, Group& world) {
  Training training(options, world);
  for (std::int64_t step = 0; step < options.steps; ++step) {
    training.step();
  }
  const std::string hash = training.verify();
  const std::vector<double> mean_losses = training.mean_losses();
  const std::vector<std::int64_t> resident = training.resident_of_ranks();
  if (!training.writes_result()) {
    return;
  }
  const Times& times = training.times();
  const nlohmann::ordered_json result{{"parameters", training.parameters()},
                                      {"step_ms", times.step},
                                      {"forward_ms", times.forward},
                                      {"backward_ms", times.backward},
                                      {"update_ms", times.update},
                                      {"exposed_comm_ms", times.exposed},
                                      {"collectives", training.collectives()},
                                      {"losses", training.losses()},
                                      {"mean_losses", mean_losses},
                                      {"resident_bytes", resident},
                                      {"weights_sha256", hash}};
  checkpoint::write_text(options.result, result.dump() + "\n");
}

int run(std::span<const std::string> words) {
  const RankOptions options = parse_rank(words);
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  train::keep_freed_memory();
  at::set_num_threads(options.threads);
  Group world = Group::from_environment();
  train_and_tell(options, world);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep-bench-train-rank", argc, argv,
                                      lockstep::bench::run);
}
