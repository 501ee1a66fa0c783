#include "checkpoint/saved_step.h"
#include "checkpoint/step_folders.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/export_options.h"
#include "cli/sibling.h"
#include "cli/standard_output.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {
namespace {

using checkpoint::SavedStep;

struct Task {
  std::string_view name;
  std::string_view purpose;
  int (*run)(Words arguments);  // those behind its name
};

// The folder that `task` is asked to look at.
const std::string& only_folder(const char* task, Words arguments) {
  if (arguments.size() != 1 || arguments.front().starts_with('-')) {
    throw UsageError(std::string(task) + ": expected one folder; see lockstep checkpoint --help");
  }
  return arguments.front();
}

// The steps that are meant: those in a folder of checkpoints, or the one that is named.
std::vector<std::string> steps_in(const std::string& path) {
  const std::string name = std::filesystem::path(path + "/").parent_path().filename().string();
  if (checkpoint::step_of(name)) {
    return {path};
  }
  std::vector<std::string> steps;
  for (const std::int64_t step : checkpoint::saved_steps(path)) {
    steps.push_back(path + "/" + checkpoint::step_folder_name(step));
  }
  if (steps.empty()) {
    throw UsageError(path + ": holds no checkpoint; name a --checkpoint folder, or a step in it");
  }
  return steps;
}

std::int64_t bytes_of(const SavedStep& step) {
  std::int64_t bytes = 0;
  for (const checkpoint::FileEntry& file : step.manifest().files) {
    bytes += file.bytes;
  }
  return bytes;
}

void print_line(const SavedStep& step, const char* end) {
  std::printf("%s  step %lld  %s  %zu files  %.1f MB%s\n", step.path().c_str(),
              static_cast<long long>(step.manifest().step), step.manifest().optimizer.c_str(),
              step.manifest().files.size(), static_cast<double>(bytes_of(step)) / 1e6, end);
}

int list(Words arguments) {
  for (const std::string& step : steps_in(only_folder("list", arguments))) {
    print_line(SavedStep(step), "");
  }
  return 0;
}

int verify(Words arguments) {
  for (const std::string& one : steps_in(only_folder("verify", arguments))) {
    const SavedStep step(one);
    step.verify();
    const checkpoint::SavedArrays complete(step);
    print_line(step, "  whole");
  }
  return 0;
}

int run_export(Words arguments) {
  const ExportRequest request = parse_export(arguments);
  if (print_if_asked(request.print)) {
    return 0;
  }
  train::check(request.options);
  std::vector<std::string> words{"export"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_sibling("lockstep-train", std::move(words));
}

constexpr std::array kTasks{
    Task{"list", "the steps in a folder: optimizer, files, size", list},
    Task{"verify", "whether each step is whole: files, hashes, every element once", verify},
    Task{"export", "a finished run's model as a folder for Hugging Face's transformers",
         run_export}};

std::string help() {
  std::string text =
      "What runs left behind: is it whole, and what else can read it.\n"
      "Usage: lockstep checkpoint list|verify DIR     (a --checkpoint folder, or one step in it)\n"
      "       lockstep checkpoint export [OPTIONS]     (--help for its options)\n\n";
  for (const Task& task : kTasks) {
    text.append("  ").append(task.name).append(10 - task.name.size(), ' ');
    text.append(task.purpose).append("\n");
  }
  return text + "\n  --help, --version\n";
}

const Task& task_named(const std::string& name) {
  const auto* const task = std::ranges::find(kTasks, name, &Task::name);
  if (task == kTasks.end()) {
    std::vector<std::string> names;
    for (const Task& known : kTasks) {
      names.emplace_back(known.name);
    }
    throw UsageError((name.empty() ? "which task?" : name + ": no such task") +
                     suggestion(name, names) + "; see lockstep checkpoint --help");
  }
  return *task;
}

}  // namespace

int run_checkpoint(Words arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h") {
    std::fputs(help().c_str(), stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("%s\n", version_text().c_str());
    return 0;
  }
  return task_named(first).run(arguments.subspan(1));
}

}  // namespace lockstep::cli
