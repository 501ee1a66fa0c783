#include "train/trainer.h"

#include "base/environment.h"
#include "base/invariant.h"
#include "lockstep/error.h"
#include "lockstep/sharded_init.h"
#include "machine/cores.h"
#include "models/hugging_face.h"
#include "models/parameter_list.h"
#include "models/registry.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Rank 0 writes the cache that the others then read; a bad file is an error on every rank.
data::Tokens open_tokens(const Options& options, Group& world, const data::Tokenizer& tokenizer,
                         const OnTokenising& on_tokenising) {
  const data::TextSource source = data::inspect(data::resolve(options.data));
  const std::string folder = environment::cache_directory();
  data::EncodeOptions encoding{
      .threads = machine::usable_cores(machine::allowed_cores().size(), machine::cpu_quota())};
  if (world.rank() == 0) {
    if (on_tokenising) {
      encoding.on_progress = [&](std::int64_t done) { on_tokenising(done, source.bytes); };
    }
    data::Tokens tokens = data::Tokens::open(source, folder, tokenizer, encoding);
    world.barrier({.name = "token cache"});
    return tokens;
  }
  world.barrier({.name = "token cache"});
  // They encode only where there is no cache, and then all at once.
  encoding.threads = std::max(1, encoding.threads / world.size());
  return data::Tokens::open(source, folder, tokenizer, encoding);
}

std::optional<data::Windows> validation_windows(const Options& options, const data::Split& split) {
  if (options.eval_batches == 0) {
    return std::nullopt;
  }
  return data::Windows(split.validation, options.sequence, "validation");
}

ParallelOptions engine_options(const Options& options) {
  ParallelOptions result;
  result.stage = options.stage;
  result.precision = options.precision == PrecisionName::f32
                         ? Precision::f32()
                         : Precision::bf16_mixed(models::keep_f32);
  result.accumulate_in =
      options.accumulate_in_shard.value_or(true) ? AccumulateIn::shard : AccumulateIn::full;
  result.reshard = options.reshard.value_or(false) ? Reshard::always : Reshard::never;
  result.share_parameters = options.share_parameters;
  result.unit_blocks = options.unit_blocks.value_or(1);
  result.bucket_mb = options.bucket_mb;
  result.overlap = options.overlap;
  result.recompute = options.recompute;
  result.reproducible = options.reproducible;
  result.seed = static_cast<std::uint64_t>(options.seed);
  return result;
}

// Fresh weights are drawn unit by unit where ranks keep shards; a folder's are read into all of
// them.
std::shared_ptr<models::LanguageModel> make_model(const Options& options, Group& world,
                                                  std::int64_t vocabulary) {
  models::ModelConfig config = models::config_of(options.model, vocabulary);
  const std::int64_t context = models::facts_of(config).context;
  if (options.sequence > context) {
    throw UsageError("--seq " + std::to_string(options.sequence) + ": " + options.model +
                     " has a context of " + std::to_string(context) + "; give --seq at most that");
  }
  models::set_dropout(config, options.dropout);
  torch::manual_seed(static_cast<std::uint64_t>(options.seed));
  if (!models::is_folder(options.model)) {
    const ShardedInit init(world, engine_options(options));
    return models::make_model(config);
  }
  std::shared_ptr<models::LanguageModel> model = models::make_model(config);
  models::load_folder(options.model, *model);
  return model;
}

std::unique_ptr<FlatOptimizer> make_optimizer(const Options& options, Parallel& parallel) {
  if (options.optimizer == OptimizerName::sgd) {
    return std::unique_ptr<FlatOptimizer>(
        new SGD(parallel.sgd({.lr = options.learning_rate,
                              .momentum = options.momentum,
                              .weight_decay = options.weight_decay,
                              .decays = models::decays})));
  }
  return std::unique_ptr<FlatOptimizer>(
      new AdamW(parallel.adamw({.lr = options.learning_rate,
                                .weight_decay = options.weight_decay,
                                .decays = models::decays})));
}

}  // namespace

Trainer::Trainer(const Options& options, Group& world, const OnTokenising& on_tokenising,
                 std::shared_ptr<const data::Tokenizer> tokenizer)
    : options_(options),
      world_(world),
      tokenizer_(tokenizer ? std::move(tokenizer) : data::open_tokenizer(options.tokenizer_spec())),
      tokens_(open_tokens(options, world, *tokenizer_, on_tokenising)),
      split_(data::split(tokens_.ids())),
      training_(split_.training, options.sequence, "training"),
      validation_(validation_windows(options, split_)),
      grid_({.windows = training_.count(),
             .leaves = options.leaves(),
             .micro_batch = options.micro_batch},
            static_cast<std::uint64_t>(options.seed)),
      model_(make_model(options, world, tokenizer_->vocabulary())),
      parallel_(model_, world, engine_options(options)),
      optimizer_(make_optimizer(options, parallel_)),
      schedule_{
          .peak = options.learning_rate, .warmup = options.warmup_steps(), .steps = options.steps} {
}

StepResult Trainer::step(const OnMoment& on_moment) {
  const auto tell = [&](Moment moment) {
    if (on_moment) {
      on_moment(moment);
    }
  };
  const auto start = Clock::now();
  const Traffic before = world_.traffic();
  const std::int64_t forwards_before = model_->forwards();
  StepResult result;
  result.step = next_step_++;
  result.learning_rate = learning_rate(schedule_, result.step);
  optimizer_->set_lr(result.learning_rate);

  std::vector<double> losses;
  for (const MicroStep& micro : parallel_.micro_steps(options_.accumulate)) {
    const Batch batch = make_batch(training_, grid_.windows_of(result.step, micro.leaf));
    tell(Moment::before_forward);
    const torch::Tensor loss = model_->loss(batch.tokens, batch.targets);  // scalar, f32
    tell(Moment::after_forward);
    losses.push_back(loss.item<double>());
    loss.backward();
    tell(Moment::after_backward);
  }
  result.grad_norm =
      options_.clip > 0 ? parallel_.clip_grad_norm(options_.clip) : parallel_.grad_norm();
  optimizer_->step();
  result.loss = parallel_.mean_loss(losses);
  tell(Moment::after_update);

  const Traffic after = world_.traffic();
  result.traffic = {after.sent - before.sent, after.received - before.received,
                    after.collectives - before.collectives};
  result.forwards = model_->forwards() - forwards_before;
  result.exposed_ms = parallel_.last_step().exposed_ms;
  result.skipped = parallel_.last_step().skipped;
  result.overlapped = parallel_.last_step().first_bucket_before_last_hook;
  result.ms = ms_since(start);
  return result;
}

std::string Trainer::save(const std::string& folder, const SaveOptions& options) {
  return save_checkpoint(folder, parallel_, optimizer_->flat_state(), options);
}

void Trainer::load(const std::string& path) {
  next_step_ = load_checkpoint(path, parallel_, optimizer_->flat_state()).step;
}

double Trainer::validate(Group& group) {
  LOCKSTEP_INVARIANT(validation_.has_value(), ==, true);
  const torch::NoGradGuard no_gradients;
  model_->eval();
  const std::int64_t available = validation_->count();
  const std::int64_t size = options_.micro_batch;
  const std::int64_t chosen = std::min(available, options_.eval_batches * size);
  const std::int64_t batches = (chosen + size - 1) / size;
  // Every slot is written by one rank and zero on the others, so that the sum is exact and the
  // order of the additions below is the same for every number of ranks.
  std::vector<double> sums(static_cast<std::size_t>(batches), 0.0);
  for (std::int64_t i = group.rank(); i < batches; i += group.size()) {
    std::vector<std::int64_t> windows;
    for (std::int64_t j = i * size; j < std::min(chosen, (i + 1) * size); ++j) {
      windows.push_back(j * available / chosen);
    }
    const Batch batch = make_batch(*validation_, windows);
    sums[static_cast<std::size_t>(i)] = model_->loss(batch.tokens, batch.targets).item<double>() *
                                        static_cast<double>(windows.size());
  }
  model_->train();
  group.all_reduce(Span(std::span<double>(sums)), {.name = "validation"}).wait();
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total / static_cast<double>(chosen);
}

}  // namespace lockstep::train
