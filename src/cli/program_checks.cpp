#include "cli/program_checks.h"

#include "base/environment.h"
#include "cli/sibling.h"
#include "data/text_source.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace lockstep::cli {
namespace {

using launch::Captured;
using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kBuild = "build it with ./quickstart";

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// A program's last words, or how it ended.
std::string failure_of(const Captured& program) {
  if (program.timed_out) {
    return format("did not end within %.0f s", program.seconds);
  }
  const std::string words = first_line(program.error);
  return words.empty() ? "ended with exit code " + std::to_string(program.exit_code) : words;
}

bool succeeded(const Captured& program) { return !program.timed_out && program.exit_code == 0; }

// A folder that goes with the object.
class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "lockstep-doctor-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw SystemError(path_ + ": can't be made; free space there or set TMPDIR");
    }
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::optional<Captured> try_to_run(const launch::CapturedOptions& options) {
  try {
    return launch::run_captured(options);
  } catch (const SystemError&) {
    return std::nullopt;
  }
}

std::optional<Captured> run_sibling(const std::string& name, std::vector<std::string> words) {
  try {
    words.insert(words.begin(), find_sibling(name));
  } catch (const SystemError&) {
    return std::nullopt;
  }
  return try_to_run(
      {.command = std::move(words), .environment = {}, .patience = std::chrono::seconds(30)});
}

Finding check_text() {
  try {
    const data::TextSource source = data::inspect(data::resolve("text"));
    return {"text", Verdict::ok,
            source.path + format(", %.2f MB", static_cast<double>(source.bytes) / 1e6), ""};
  } catch (const UsageError& error) {
    return {"text", Verdict::warn, first_line(error.what()),
            "run scripts/setup, or give --data FILE"};
  }
}

Finding check_cache() {
  try {
    const std::string folder = environment::cache_directory();
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure || ::access(folder.c_str(), W_OK) != 0) {
      return {"cache", Verdict::fail, folder + " can't be written",
              "set LOCKSTEP_CACHE to a folder that can"};
    }
    return {"cache", Verdict::ok, folder, ""};
  } catch (const UsageError& error) {
    return {"cache", Verdict::fail, error.what(), "set LOCKSTEP_CACHE"};
  }
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One step of the smallest model on two ranks, on a text made for it.
Finding test_training() {
  const Scratch scratch;
  std::ofstream text(scratch.file("text"));
  for (int line = 0; line < 200; ++line) {
    text << "line " << line << " of a text that nobody keeps\n";
  }
  text.close();
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "train"};
  for (const auto& word : {"--ranks", "2", "--seq", "32", "--micro-batch", "1", "--steps", "1",
                           "--eval-batches", "0", "--deadline", "20"}) {
    words.emplace_back(word);
  }
  words.insert(words.end(), {"--data", scratch.file("text"), "--run", scratch.file("run")});
  const auto program = try_to_run({.command = words,
                                   .environment = {"LOCKSTEP_CACHE=" + scratch.file("cache")},
                                   .patience = std::chrono::seconds(30)});
  const Captured nothing{.exit_code = 127, .output = "", .error = "can't be started"};
  return judge_training(program.value_or(nothing), contents_of(scratch.file("run/report.json")));
}

}  // namespace

Finding judge_libtorch(const std::optional<Captured>& program) {
  if (!program) {
    return {"LibTorch", Verdict::warn,
            "not found: lockstep-train is not beside this program; only launch and bench "
            "collectives work",
            std::string("scripts/setup fetches LibTorch; ") + kBuild};
  }
  const json answer = json::parse(program->output, nullptr, false);
  if (!succeeded(*program) || !answer.is_object()) {
    return {"LibTorch", Verdict::fail, "lockstep-train does not start: " + failure_of(*program),
            std::string("its LibTorch has moved or does not fit: ") + kBuild};
  }
  return {"LibTorch", Verdict::ok,
          answer.value("version", "unknown version") + ", kernels for " +
              answer.value("kernels", "unknown") + ", " + answer.value("path", "unknown path"),
          ""};
}

Finding judge_mpi(const std::optional<Captured>& program) {
  if (!program || !succeeded(*program)) {
    return {"MPI", Verdict::ok, "none (all ranks run on this host; it is not needed)", ""};
  }
  return {"MPI", Verdict::ok,
          first_line(program->output) + " (not used: all ranks run on this host)", ""};
}

Finding judge_collectives(const std::optional<Captured>& program) {
  constexpr double kSlow = 0.4;
  const std::string name = "collectives";
  if (!program) {
    return {name, Verdict::warn,
            "not tested: lockstep-bench-collectives is not beside this program", kBuild};
  }
  if (program->timed_out) {
    return {name, Verdict::warn, "not tested: " + failure_of(*program),
            "a quiet machine needs five seconds: see what else runs here, and run it again"};
  }
  const json answers = json::parse(program->output, nullptr, false);
  if (!succeeded(*program) || !answers.is_array() || answers.empty()) {
    return {name, Verdict::fail, "all_reduce of 2 ranks failed: " + failure_of(*program),
            "file this report as a bug"};
  }
  const json& answer = answers.front();
  const double share = answer.value("floor_share", 0.0);
  Finding finding{
      name, Verdict::ok,
      format("all_reduce of %.0f MB on 2 ranks is right, %.2f ms, %.2f of plain copies' "
             "speed",
             answer.value("bytes", 0.0) / 1e6, answer.value("ms", 0.0), share),
      ""};
  if (share < kSlow) {
    finding.verdict = Verdict::warn;
    finding.fix = "the ranks had no core of their own: see what else runs here, and run it again";
  }
  return finding;
}

Finding judge_training(const Captured& program, const std::string& report_text) {
  const json report = json::parse(report_text, nullptr, false);
  if (!succeeded(program) || !report.is_object() || report.value("losses", json()).size() != 1) {
    return {"training", Verdict::fail, "a step of 2 ranks failed: " + failure_of(program),
            "file this report as a bug"};
  }
  return {"training", Verdict::ok,
          format("a step of gpt2-tiny on 2 ranks: loss %.3f, same weights on both, %.1f s in all",
                 report["losses"][0].get<double>(), program.seconds),
          ""};
}

std::vector<Finding> check_programs() {
  std::vector<Finding> findings;
  const auto libtorch = run_sibling("lockstep-train", {"libtorch"});
  findings.push_back(judge_libtorch(libtorch));
  findings.push_back(
      judge_mpi(try_to_run({.command = {"mpirun", "--version"}, .environment = {}})));
  findings.push_back(check_text());
  findings.push_back(check_cache());
  findings.push_back(judge_collectives(
      run_sibling("lockstep-bench-collectives",
                  {"--ranks", "2", "--sizes", "4MB", "--ops", "all_reduce", "--json"})));
  if (libtorch) {
    findings.push_back(test_training());
  }
  return findings;
}

}  // namespace lockstep::cli
