#include "plan/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

namespace lockstep::plan {
namespace {

using Advice = std::optional<std::string>;

// Shares of a step below this are not worth a change.
constexpr double kNotable = 0.10;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string percent(double share) { return format("%.0f %%", share * 100); }

double least_exposed_ms(const RunResult& result) {
  return result.exposed_ms.empty() ? 0 : *std::ranges::min_element(result.exposed_ms);
}

// What even the rank that waits least spends in collectives: the rest is waiting for a slow rank.
double exposed_share(const RunResult& result) {
  return result.step_ms > 0 ? least_exposed_ms(result) / result.step_ms : 0;
}

// The first lever that is not pulled yet.
std::string exchange_lever(const RunSetting& setting, const RunResult& result) {
  constexpr double kWorthSplitting = 8e6;  // bytes; the default's first bucket has 1e6
  const auto gradient_bytes = static_cast<double>(result.gradient_bytes);
  const std::string gain = "; a step gets up to " + percent(exposed_share(result)) + " shorter";
  if (!setting.overlap) {
    return "leave --overlap on" + gain;
  }
  if (setting.bucket_mb == 0) {
    return format("%lld collectives a step: use --bucket-mb 25",
                  static_cast<long long>(setting.buckets)) +
           gain;
  }
  if (setting.buckets == 1 && gradient_bytes >= kWorthSplitting) {
    return format("the one bucket can't overlap: use --bucket-mb %.0f", gradient_bytes / 4e6) +
           gain;
  }
  return format("use --accumulate %lld (the batch doubles); a token costs up to ",
                static_cast<long long>(setting.accumulate * 2)) +
         percent(exposed_share(result) / 2) + " less time";
}

Advice on_exposed(const RunSetting& setting, const RunResult& result) {
  if (setting.ranks == 1 || exposed_share(result) < kNotable) {
    return std::nullopt;
  }
  return format("%.1f of a step's %.1f ms (", least_exposed_ms(result), result.step_ms) +
         percent(exposed_share(result)) +
         ") is exposed communication: " + exchange_lever(setting, result);
}

Advice on_slow_rank(const RunSetting&, const RunResult& result) {
  if (result.exposed_ms.size() < 2) {
    return std::nullopt;
  }
  const auto [least, most] = std::ranges::minmax_element(result.exposed_ms);
  const double waited_ms = *most - *least;
  if (waited_ms < kNotable * result.step_ms) {
    return std::nullopt;
  }
  return format(
             "rank %d waits %.1f of a step's %.1f ms for rank %d: see what else runs on its "
             "cores, or use fewer --ranks; a step gets up to ",
             static_cast<int>(most - result.exposed_ms.begin()), waited_ms, result.step_ms,
             static_cast<int>(least - result.exposed_ms.begin())) +
         percent(waited_ms / result.step_ms) + " shorter";
}

Advice on_small_pages(const RunSetting& setting, const RunResult& result) {
  constexpr std::int64_t kManyPages = 64'000'000;  // bytes
  if (!setting.small_shared_pages || setting.ranks == 1 || exposed_share(result) < kNotable ||
      result.gradient_bytes < kManyPages) {
    return std::nullopt;
  }
  return format(
      "%.0f MB of gradients per rank lie in 4 KB pages: let root write advise to "
      "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
      static_cast<double>(result.gradient_bytes) / 1e6);
}

Advice on_small_micro_batch(const RunSetting& setting, const RunResult& result) {
  constexpr double kLowMfu = 0.30;
  constexpr std::int64_t kEnoughTokens = 512;
  const std::int64_t tokens = setting.micro_batch * setting.sequence;
  if (result.mfu <= 0 || result.mfu >= kLowMfu || tokens >= kEnoughTokens) {
    return std::nullopt;
  }
  const std::int64_t wanted = (kEnoughTokens + setting.sequence - 1) / setting.sequence;
  return "MFU is " + percent(result.mfu) +
         format(
             " with %lld tokens in a micro-batch, too few to fill the processor: use "
             "--micro-batch %lld",
             static_cast<long long>(tokens), static_cast<long long>(wanted)) +
         (setting.accumulate > 1 ? " and lower --accumulate to keep the batch" : "");
}

Advice on_slow_bf16(const RunSetting&, const RunResult& result) {
  if (result.peak_flops <= 0 || result.f32_peak_flops <= result.peak_flops) {
    return std::nullopt;
  }
  return format(
      "matrix products reach %.0f GFLOP/s in bf16 and %.0f in f32 on this processor: use "
      "--precision f32; they get %.1f times as fast",
      result.peak_flops / 1e9, result.f32_peak_flops / 1e9,
      result.f32_peak_flops / result.peak_flops);
}

Advice on_narrow_modules(const RunSetting& setting, const RunResult&) {
  if (setting.narrow_modules.empty()) {
    return std::nullopt;
  }
  return format("%zu norms or embeddings in bf16 add their gradients in bf16, first '",
                setting.narrow_modules.size()) +
         setting.narrow_modules.front() + "': keep them in fp32 (Precision::keep_f32)";
}

Advice on_too_many_threads(const RunSetting& setting, const RunResult&) {
  if (setting.ranks * setting.threads <= setting.cores) {
    return std::nullopt;
  }
  const std::string seen = format("%d ranks x %d threads share %d cores: use ", setting.ranks,
                                  setting.threads, setting.cores);
  return setting.ranks <= setting.cores
             ? seen + format("--threads %d", setting.cores / setting.ranks)
             : seen + format("--ranks %d, and --accumulate for the same batch", setting.cores) +
                   (setting.threads > 1 ? ", and --threads 1" : "");
}

Advice on_skipped_steps(const RunSetting& setting, const RunResult& result) {
  if (result.skipped_steps == 0) {
    return std::nullopt;
  }
  return format(
      "%lld of %lld steps were skipped since a gradient was not finite: lower --lr (%g) or raise "
      "--warmup",
      static_cast<long long>(result.skipped_steps), static_cast<long long>(result.steps),
      setting.learning_rate);
}

Advice on_memory(const RunSetting& setting, const RunResult& result) {
  constexpr double kTolerated = 1.03;
  constexpr double kLibrary = 4e6;  // bytes of a rank that LibTorch and the groups keep
  const auto resident = static_cast<double>(result.resident_bytes);
  const auto expected = static_cast<double>(result.expected_bytes);
  if (expected <= 0 || resident <= expected * kTolerated + kLibrary * setting.ranks) {
    return std::nullopt;
  }
  return format("the ranks hold %.2f GB, ", resident / 1e9) + percent(resident / expected - 1) +
         format(
             " more than ledger and activations (%.2f GB): something outside the model keeps it; "
             "report it with report.json if the program added nothing",
             expected / 1e9);
}

}  // namespace

std::vector<std::string> advise(const RunSetting& setting, const RunResult& result) {
  std::vector<std::string> lines;
  if (result.step_ms <= 0) {  // a run without steps shows nothing
    return lines;
  }
  for (const auto rule :
       {on_too_many_threads, on_slow_bf16, on_small_micro_batch, on_exposed, on_slow_rank,
        on_small_pages, on_narrow_modules, on_memory, on_skipped_steps}) {
    if (const Advice line = rule(setting, result)) {
      lines.push_back(*line);
    }
  }
  return lines;
}

}  // namespace lockstep::plan
