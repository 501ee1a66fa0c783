// The folder that a run leaves behind: config.toml, metrics.jsonl, events for TensorBoard,
// report.json, trace.json, weights.safetensors, flight/ (lockstep doctor --flight).
#pragma once

#include "train/event_file.h"
#include "train/options.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::train {

class RunFolder {
 public:
  // Creates the folder options.run_directory, or runs/<date>-<time>-<model>-<stage> when that is
  // empty, and writes config.toml. A run that goes on from `first_step` keeps what metrics.jsonl
  // has of the steps before it. Throws SystemError naming what can't be made, UsageError when
  // another run is writing to the folder; it is this run's for as long as this object lives.
  explicit RunFolder(const Options& options, std::int64_t first_step = 0);

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
  // Appends one line to metrics.jsonl; a reader sees whole lines. The
  // documented tags among its members go to TensorBoard's file too, at line["step"]. Throws
  // SystemError.
  void add_metrics(const nlohmann::ordered_json& line);

 private:
  // Holds the lock of the folder, which goes with the process whatever ends it.
  class Lock {
   public:
    explicit Lock(const std::string& folder);
    Lock(Lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    ~Lock();

   private:
    int descriptor_;
  };

  std::string path_;
  Lock lock_;
  std::ofstream metrics_;
  std::unique_ptr<EventFile> events_;  // made with the first line, which knows the first step
};

}  // namespace lockstep::train
