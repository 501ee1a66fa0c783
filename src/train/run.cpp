#include "train/run.h"

#include "base/environment.h"
#include "checkpoint/mapped_file.h"
#include "checkpoint/pending_file.h"
#include "comm/together.h"
#include "data/byte_tokenizer.h"
#include "data/tokenizer.h"
#include "lockstep/error.h"
#include "machine/command_line.h"
#include "machine/cores.h"
#include "machine/pages.h"
#include "models/parameter_list.h"
#include "models/registry.h"
#include "train/checkpoints.h"
#include "train/console.h"
#include "train/counting_allocator.h"
#include "train/generate.h"
#include "train/matmul_peak.h"
#include "train/memory.h"
#include "train/narrow_modules.h"
#include "train/report.h"
#include "train/run_advice.h"
#include "train/run_folder.h"
#include "train/shared_cores.h"
#include "train/shared_files.h"
#include "train/step_trace.h"
#include "train/traced_steps.h"
#include "train/trainer.h"
#include "train/weights.h"

#include <nlohmann/json.hpp>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lockstep::train {
namespace {

// A little below 1: what a small model finds unlikely is mostly wrong.
constexpr double kSampleTemperature = 0.8;

int choose_threads(const Options& options, int ranks) {
  if (options.threads) {
    return *options.threads;
  }
  if (options.reproducible) {
    return 1;
  }
  if (const auto shared_out = environment::integer("OMP_NUM_THREADS")) {
    return static_cast<int>(*shared_out);
  }
  const int cores = machine::usable_cores(machine::allowed_cores().size(), machine::cpu_quota());
  return std::max(1, cores / ranks);
}

// One step of a small model, so that the baseline holds what LibTorch keeps for itself.
void run_small_step(const Options& options) {
  const std::shared_ptr<models::LanguageModel> model =
      models::make_model(models::config_of("gpt2-tiny", data::kByteVocabulary));
  if (options.precision == PrecisionName::bf16) {
    for (const auto& item : model->named_parameters()) {
      if (!models::keep_f32(item.key())) {
        item.value().set_data(item.value().to(torch::kBFloat16));
      }
    }
  }
  const std::int64_t length = std::min(options.sequence, model->facts().context);
  const torch::Tensor tokens =
      torch::zeros({options.micro_batch, length}, torch::kInt64);  // [B, T]
  model->loss(tokens, tokens).backward();
}

std::int64_t measure_baseline(const Options& options) {
  count_allocations();
  run_small_step(options);
  return resident_memory().total();
}

class Run {
 public:
  Run(const Options& options, Group& world)
      : options_(options),
        threads_(choose_threads(options, world.size())),
        tokenizer_(data::open_tokenizer(options.tokenizer_spec())),
        memory_(measure_baseline(options)),
        records_(std::move(*world.split(0, world.rank()))),
        console_(world.rank() == 0 ? std::optional<Console>(stdout) : std::nullopt),
        trainer_(options_, world, tokenising_shown(), tokenizer_),
        origin_{.model = options.model,
                .sequence = options.sequence,
                .configuration =
                    models::configuration_text(options.model, trainer_.model().configuration()),
                .tokenizer = trainer_.tokenizer().spec(),
                .tokenizer_identity = trainer_.tokenizer().identity()},
        checkpoints_(options_, trainer_),
        peak_flops_(matmul_peak(records_, {.bf16 = options.precision == PrecisionName::bf16})),
        traced_(options.trace.empty()
                    ? TraceWindow{}
                    : trace_window(checkpoints_.first_step(), checkpoints_.last_step()),
                trainer_.parallel()),
        folder_(world.rank() == 0
                    ? std::optional<RunFolder>(std::in_place, options, checkpoints_.first_step())
                    : std::nullopt) {}

  void train() {
    record_flight();
    show_header();
    while (trainer_.steps_done() < checkpoints_.last_step()) {
      record(step());
      save_if_due();
      if (options_.eval_every > 0 && trainer_.steps_done() % options_.eval_every == 0) {
        validate();
      }
    }
    save_if_due();
    if (steps_here() == 0) {
      look_at_memory(Moment::before_forward, /*asks_kernel=*/true);
    }
    if (history_.validation.empty() ||
        history_.validation.back().step != checkpoints_.last_step()) {
      validate();
    }
  }

  Trainer& trainer() { return trainer_; }

  // A run whose loss is lost must not look like success to whoever starts the next one.
  void check_last_loss() const {
    if (diverged()) {
      throw Error("training diverged: the last loss is not finite, and " +
                  std::to_string(history_.skipped_steps) + " of " + std::to_string(options_.steps) +
                  " steps were skipped for gradients that were not; lower --lr or raise --warmup");
    }
  }

  void finish() {
    release_freed_memory();
    std::optional<WeightsFile> file;
    if (folder_) {
      file.emplace(folder_->file("weights.safetensors"), origin_, trainer_.model());
    }
    const WeightDigests digests = digest_weights(trainer_.parallel(), file ? &*file : nullptr);
    verify_replicas(records_, digests);
    const Report report = make_report(hex(digests.weights));
    if (!folder_) {
      return;
    }
    keep_tokenizer();
    file->publish();
    const std::string text = report_json(report).dump(1) + "\n";
    checkpoint::write_text(folder_->file("report.json"), text);
    if (!options_.report.empty()) {
      checkpoint::write_text(options_.report, text);
    }
    show_outcome(report);
  }

 private:
  bool diverged() const {
    if (!history_.validation.empty()) {
      return !std::isfinite(history_.validation.back().loss);
    }
    return !history_.losses.empty() && !std::isfinite(history_.losses.back());
  }

  // Collective: all ranks record into rank 0's folder, unless the environment named another one.
  void record_flight() {
    std::string path;
    if (folder_) {
      path = std::filesystem::absolute(folder_->file("flight")).string();
      std::filesystem::remove_all(path);  // an earlier run's in the same folder
    }
    path = comm::gather_texts(records_, path, "run folder").front();
    if (records_.flight_folder().empty()) {
      records_.record_flight(path);
    }
  }

  // Of a file the run keeps a copy, so that its text can be read wherever the file has gone.
  void keep_tokenizer() {
    const std::string copy = folder_->file("tokenizer.json");
    std::filesystem::remove(copy);  // an earlier run's in the same folder
    if (std::filesystem::path(origin_.tokenizer).is_absolute()) {
      const checkpoint::MappedFile file(origin_.tokenizer);
      checkpoint::write_text(
          copy, {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
    }
  }

  OnTokenising tokenising_shown() {
    return [this](std::int64_t done, std::int64_t total) { console_->tokenising(done, total); };
  }

  // Steps that this run takes itself.
  std::int64_t steps_here() const { return checkpoints_.last_step() - checkpoints_.first_step(); }

  // Memory is looked at in the second step, when the first has set everything up.
  std::int64_t memory_step() const {
    return checkpoints_.first_step() + std::min<std::int64_t>(1, steps_here() - 1);
  }
  bool samples_memory() const { return trainer_.steps_done() == memory_step(); }

  void save_if_due() {
    const auto path = checkpoints_.save_if_due();
    if (path && console_) {
      console_->note("checkpoint  " + *path);
    }
  }

  StepResult step() {
    const bool samples = samples_memory();
    records_.mark_step(trainer_.steps_done());
    traced_.begin(trainer_.steps_done());
    const StepResult result = trainer_.step([&](Moment moment) {
      traced_.at(moment);
      if (samples || traced_.in_step()) {
        look_at_memory(moment, samples);
      }
    });
    if (traced_.end(result.step)) {
      save_trace();
    }
    return result;
  }

  void look_at_memory(Moment moment, bool asks_kernel) {
    if (!asks_kernel) {
      traced_.memory(memory_.count(moment, held()));
      return;
    }
    traced_.memory(memory_.sample(moment, held()));
    if (shared_files_.empty()) {  // at the first look, at rest
      shared_files_ = shared_files();
    }
    note_held();
    mine_.baseline = memory_.baseline();
    mine_.phases = memory_.phases();
    mine_.shared_at_rest = memory_.shared_at_rest();
  }

  // As soon as it is complete, so that a run that is ended early has it.
  void save_trace() {
    const std::string text = gather_trace(records_, traced_.spans());
    if (folder_) {
      checkpoint::write_text(folder_->file("trace.json"), text);
      checkpoint::write_text(options_.trace, text);
    }
  }

  void record(const StepResult& step) {
    history_.losses.push_back(step.loss);
    history_.grad_norms.push_back(step.grad_norm);
    history_.skipped_steps += step.skipped ? 1 : 0;
    // The first step sets things up and the second samples memory: neither tells the speed.
    if (step.step - checkpoints_.first_step() > 1 || steps_here() <= 2) {
      history_.step_ms.push_back(step.ms);
      history_.exposed_ms.push_back(step.exposed_ms);
    }
    mine_.sent += step.traffic.sent;
    mine_.received += step.traffic.received;
    mine_.collectives += step.traffic.collectives;
    mine_.forwards += step.forwards;
    if (folder_) {
      folder_->add_metrics(line_of(step));
      console_->step(step, options_);
    }
  }

  nlohmann::ordered_json line_of(const StepResult& step) {
    nlohmann::ordered_json line = metrics_line(step, {.tokens = tokens_per_step(options_),
                                                      .flops = flops_per_step(),
                                                      .peak_flops = peak_flops_});
    if (step.step == memory_step()) {
      line.update(memory_tags(mine_));
    }
    return line;
  }

  double flops_per_step() {
    return models::flops(trainer_.model().facts(), tokens_per_step(options_), options_.sequence);
  }

  void validate() {
    if (options_.eval_batches == 0) {
      return;
    }
    const ValidationPoint point{trainer_.steps_done(), trainer_.validate(records_)};
    history_.validation.push_back(point);
    if (folder_) {
      folder_->add_metrics({{"step", point.step}, {"eval/loss", point.loss}});
      console_->validation(point);
    }
  }

  plan::Ledger held() {
    const HeldBytes bytes = trainer_.parallel().held();
    return {bytes.parameters, bytes.gradients, bytes.optimizer, bytes.transient};
  }

  // Of gradients the most: what accumulates in full is freed with the exchange (zero2, zero3).
  void note_held() {
    const std::int64_t gradients = mine_.held.gradients;
    mine_.held = held();
    mine_.held.gradients = std::max(mine_.held.gradients, gradients);
  }

  Report make_report(std::string hash) {
    note_held();
    mine_.exposed_us = std::llround(median(history_.exposed_ms) * 1e3);
    const bool bf16 = options_.precision == PrecisionName::bf16;
    // A machine that was busy before the first step may be quieter now.
    peak_flops_ = std::max(peak_flops_, matmul_peak(records_, {.bf16 = bf16}));
    Report report;
    report.command = machine::command_line("lockstep");
    report.options = options_;
    report.threads = threads_;
    report.cores = shared_cores(records_);
    report.parameters = trainer_.model().facts().parameters;
    report.flops_per_step = flops_per_step();
    report.peak_flops = peak_flops_;
    report.history = history_;
    report.first_step = checkpoints_.first_step();
    report.weights_sha256 = std::move(hash);
    report.ranks = gather_records(records_, mine_);
    report.shared_allocated = host_bytes(records_, shared_files_);
    report.predicted = predict(trainer_.model().configuration(), options_);
    report.advice = advice_for(
        report, {.buckets = trainer_.parallel().buckets(),
                 .narrow_modules = narrow_modules(trainer_.model()),
                 .f32_peak_flops = bf16 ? matmul_peak(records_, {.bf16 = false}) : 0.0,
                 .small_shared_pages = !machine::may_use_huge_pages(machine::shared_pages())});
    return report;
  }

  void show_header() {
    if (!folder_) {
      return;
    }
    for (const auto& note : {trainer_.tokens().note(), checkpoints_.note()}) {
      if (note) {
        console_->note(*note);
      }
    }
    const data::Split split = data::split(trainer_.tokens().ids());
    console_->header({.options = options_,
                      .threads = threads_,
                      .parameters = trainer_.model().facts().parameters,
                      .training_tokens = static_cast<std::int64_t>(split.training.size()),
                      .validation_tokens = static_cast<std::int64_t>(split.validation.size()),
                      .predicted = predict(trainer_.model().configuration(), options_),
                      .run_folder = folder_->path()});
  }

  void show_outcome(const Report& report) {
    if (options_.sample_bytes > 0 && !diverged()) {
      const std::string text = sample_text(trainer_.model(), trainer_.tokenizer(), "",
                                           {.bytes = options_.sample_bytes,
                                            .temperature = kSampleTemperature,
                                            .seed = static_cast<std::uint64_t>(options_.seed),
                                            .window = options_.sequence});
      console_->note("\nsample:\n" + printable(text) + "\n");
    }
    console_->note("weights     sha256 " + report.weights_sha256 +
                   (options_.ranks > 1
                        ? ", bit-identical on all " + std::to_string(options_.ranks) + " ranks"
                        : ""));
    console_->outcome(report);
    if (!options_.trace.empty() && steps_here() > 0) {
      console_->note("trace       " + options_.trace + " (open it in ui.perfetto.dev)");
    }
    console_->note("files in    " + folder_->path());
  }

  Options options_;
  int threads_;
  std::shared_ptr<const data::Tokenizer>
      tokenizer_;  // its tables are no part of the model's memory
  MemoryWatch memory_;
  Group records_;                   // what is not the engine's goes here
  std::optional<Console> console_;  // of rank 0, as is the folder
  Trainer trainer_;
  WeightsOrigin origin_;
  Checkpoints checkpoints_;
  double peak_flops_;  // of all ranks
  TracedSteps traced_;
  std::optional<RunFolder> folder_;  // made last: data that can't be trained on leaves no folder
  History history_;
  RankRecord mine_;
  std::vector<SharedFile> shared_files_;
};

}  // namespace

int run(const Options& options, Group world, const AfterTraining& after_training) {
  keep_freed_memory();
  at::set_num_threads(choose_threads(options, world.size()));
  Run one(options, world);
  one.train();
  if (after_training) {
    after_training(one.trainer());
  }
  one.finish();
  one.check_last_loss();
  return 0;
}

}  // namespace lockstep::train
