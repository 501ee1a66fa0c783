// What to change in a run, from what was asked and what was seen. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::plan {

// What a run was asked to do, and where.
struct RunSetting {
  int ranks = 1;
  int threads = 1;  // per rank
  int cores = 1;    // that all ranks together may use
  bool overlap = true;
  double bucket_mb = 25.0;
  std::int64_t buckets = 0;      // that a step exchanges
  std::int64_t micro_batch = 1;  // sequences
  std::int64_t sequence = 1;     // tokens
  std::int64_t accumulate = 1;
  double learning_rate = 0;
  // Norms and embeddings of LibTorch's own that are held in bf16.
  std::vector<std::string> narrow_modules;
  // The kernel gives shared memory no huge pages.
  bool small_shared_pages = false;
};

// What was measured; 0 or empty: not known.
struct RunResult {
  std::int64_t steps = 0;
  std::int64_t skipped_steps = 0;
  double step_ms = 0;              // median
  std::vector<double> exposed_ms;  // per rank, median per step
  double mfu = 0;
  // Matrix products of all ranks at once, operations per second.
  double peak_flops = 0;      // in the run's precision
  double f32_peak_flops = 0;  // when that is bf16
  // Of one rank.
  std::int64_t gradient_bytes = 0;
  // Of all ranks: what the kernel counted, and ledger plus activations.
  std::int64_t resident_bytes = 0;
  std::int64_t expected_bytes = 0;
};

// One line each: what was seen, what to change, what that gains where it can be computed. Empty for
// a run with nothing to improve by these rules.
std::vector<std::string> advise(const RunSetting& setting, const RunResult& result);

}  // namespace lockstep::plan
