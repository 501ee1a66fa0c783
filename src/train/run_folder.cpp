#include "train/run_folder.h"

#include "checkpoint/pending_file.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

std::string default_folder(const Options& options) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local);
  // A folder that the model came from gives its last name.
  const std::string model =
      fs::absolute(options.model + "/").lexically_normal().parent_path().filename().string();
  const std::string stage(name_of(options.stage));
  const std::string base = std::string("runs/") + date + "-" + model + "-" + stage;
  std::string path = base;
  for (int other = 2; fs::exists(path); ++other) {  // two runs begun in one second
    path = base + "-" + std::to_string(other);
  }
  return path;
}

bool is_for_tensorboard(std::string_view name) {
  constexpr std::array<std::string_view, 7> kTags{
      "train/loss",        "train/lr", "train/grad_norm", "eval/loss",
      "perf/tokens_per_s", "perf/mfu", "comm/exposed_ms"};
  return name.starts_with("memory/") || std::ranges::find(kTags, name) != kTags.end();
}

std::vector<Scalar> scalars_of(const nlohmann::ordered_json& line) {
  std::vector<Scalar> scalars;
  for (const auto& [name, value] : line.items()) {
    if (is_for_tensorboard(name)) {
      scalars.push_back({name, value.get<double>()});
    }
  }
  return scalars;
}

// The whole lines of an earlier run about what happened before `first_step`: its steps, and what
// was evaluated then.
std::string lines_before(const std::string& path, std::int64_t first_step) {
  std::ifstream earlier(path);
  std::string kept;
  for (std::string line; first_step > 0 && std::getline(earlier, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) {
      const bool evaluates = json.contains("eval/loss");
      kept += json["step"] < first_step + (evaluates ? 1 : 0) ? line + "\n" : "";
    }
  }
  return kept;
}

std::string make_folder(std::string path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    throw SystemError("--run " + path + ": can't be made: " + error.message());
  }
  return path;
}

}  // namespace

RunFolder::Lock::Lock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw SystemError("--run " + folder + ": can't be opened: " + std::strerror(errno));
  }
  // File systems without locks (some network ones) say so, and are used without.
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw UsageError("--run " + folder + ": another run is writing to it; choose another folder");
  }
}

RunFolder::Lock::~Lock() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

RunFolder::RunFolder(const Options& options, std::int64_t first_step)
    : path_(make_folder(options.run_directory.empty() ? default_folder(options)
                                                      : options.run_directory)),
      lock_(path_) {
  checkpoint::write_text(file("config.toml"), to_toml(options));
  checkpoint::write_text(file("metrics.jsonl"), lines_before(file("metrics.jsonl"), first_step));
  metrics_.open(file("metrics.jsonl"), std::ios::app);
  if (!metrics_) {
    throw SystemError(file("metrics.jsonl") + ": can't be opened: " + std::strerror(errno));
  }
}

void RunFolder::add_metrics(const nlohmann::ordered_json& line) {
  metrics_ << line.dump() + "\n" << std::flush;
  if (!metrics_) {
    throw SystemError(file("metrics.jsonl") + ": writing failed: " + std::strerror(errno));
  }
  const auto step = line.at("step").get<std::int64_t>();
  if (!events_) {
    events_ = std::make_unique<EventFile>(path_, step);
  }
  events_->add(step, scalars_of(line));
}

}  // namespace lockstep::train
