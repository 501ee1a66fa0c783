// What a run of `lockstep train` leaves for TensorBoard and for viewers of traces.
#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::train {
namespace {

using nlohmann::json;
using test::StartedProgram;
using test::TemporaryFolder;
using Words = std::vector<std::string>;

constexpr std::chrono::seconds kPatience{120};

Words train_command(const TemporaryFolder& folder, const Words& words) {
  Words command{LOCKSTEP_PROGRAM, "train", "--model", "gpt2-tiny",        "--data",         "text",
                "--seq",          "64",    "--run",   folder.file("run"), "--eval-batches", "2",
                "--micro-batch",  "2"};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

json train(const TemporaryFolder& folder, const Words& words) {
  StartedProgram program(train_command(folder, words), {"LOCKSTEP_CACHE=" + folder.file("cache")});
  EXPECT_EQ(program.wait(kPatience), 0) << program.output() << program.error();
  return json::parse(test::contents_of(folder.file("run/report.json")));
}

json read_with_tensorboard(const std::string& folder) {
  StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_READ_EVENTS, folder});
  EXPECT_EQ(python.wait(kPatience), 0) << python.output() << python.error();
  return json::parse(python.output(), nullptr, false);
}

std::vector<json> metrics_of(const std::string& folder) {
  std::vector<json> lines;
  for (const std::string& line : test::lines_of(test::contents_of(folder + "/metrics.jsonl"))) {
    lines.push_back(json::parse(line));
  }
  return lines;
}

// --- TensorBoard --------------------------------------------------------------------------------

TEST(RunRecords, TensorboardShowsWhatMetricsSay) {
  const TemporaryFolder folder;
  const json report =
      train(folder, {"--ranks", "2", "--steps", "5", "--eval-every", "2", "--clip", "0.5"});
  const json events = read_with_tensorboard(folder.file("run"));
  json expected = json::object();
  std::set<std::string> unseen{"train/loss",        "train/lr", "train/grad_norm", "eval/loss",
                               "perf/tokens_per_s", "perf/mfu", "comm/exposed_ms"};
  for (const json& line : metrics_of(folder.file("run"))) {
    for (const auto& [name, value] : line.items()) {
      if (unseen.contains(name) || expected.contains(name) || name.starts_with("memory/")) {
        unseen.erase(name);
        const auto rounded = static_cast<double>(static_cast<float>(value.get<double>()));
        expected[name].push_back({line["step"], rounded});
      }
    }
  }
  EXPECT_TRUE(unseen.empty()) << ::testing::PrintToString(unseen);
  EXPECT_EQ(events, expected);
  EXPECT_EQ(events["train/loss"].size(), 5u);
  EXPECT_EQ(events["eval/loss"].size(), 3u);  // after steps 2, 4 and 5
  const json& held = report["memory"]["per_rank"][0];
  for (const char* category : {"parameters", "gradients", "optimizer", "pss_peak"}) {
    const json& points = events[std::string("memory/") + category];
    ASSERT_EQ(points.size(), 1u) << category;
    EXPECT_EQ(points[0][0], 1) << "sampled in the second step";
    EXPECT_EQ(points[0][1].get<float>(), held[category].get<float>()) << category;
  }
}

TEST(RunRecords, AKilledRunKeepsItsEvents) {
  const TemporaryFolder folder;
  StartedProgram program(train_command(folder, {"--ranks", "2", "--steps", "100000"}),
                         {"LOCKSTEP_CACHE=" + folder.file("cache")});
  const auto enough = [&] {
    return std::filesystem::exists(folder.file("run/metrics.jsonl")) &&
           test::lines_of(test::contents_of(folder.file("run/metrics.jsonl"))).size() > 20;
  };
  for (int i = 0; i < 1200 && !enough(); ++i) {
    ::usleep(50'000);
  }
  for (const pid_t process : program.marked_processes()) {
    ::kill(process, SIGKILL);
  }
  program.wait(kPatience);
  const std::size_t steps = metrics_of(folder.file("run")).size();
  const json events = read_with_tensorboard(folder.file("run"));
  ASSERT_GT(steps, 20u);
  EXPECT_GE(events["train/loss"].size() + 1, steps);
}

// --- MFU and advice -----------------------------------------------------------------------------

TEST(RunRecords, MfuIsAShareOfWhatTheMachineReaches) {
  const TemporaryFolder folder;
  const json report = train(folder, {"--ranks", "2", "--steps", "6"});
  EXPECT_GT(report["mfu"].get<double>(), 0.001);
  EXPECT_LT(report["mfu"].get<double>(), 1.0);
  for (const json& line : metrics_of(folder.file("run"))) {
    if (line.contains("perf/mfu")) {
      EXPECT_GT(line["perf/mfu"].get<double>(), 0.0);
      EXPECT_LT(line["perf/mfu"].get<double>(), 1.0);
    }
  }
}

TEST(RunRecords, TooManyThreadsAreAdvisedAgainst) {
  const TemporaryFolder folder;
  const json report = train(folder, {"--ranks", "2", "--steps", "3", "--threads", "1024"});
  ASSERT_FALSE(report["advice"].empty());
  EXPECT_TRUE(report["advice"][0].get<std::string>().starts_with("2 ranks x 1024 threads share "))
      << report["advice"];
}

// --- the trace ----------------------------------------------------------------------------------

struct Span {
  std::string name;
  double begin = 0;  // microseconds
  double end = 0;
  json arguments;
};

// Spans by rank and lane, each in the order of their begins; everything else a strict reader of the
// format asks for is checked on the way.
std::map<std::string, std::map<std::string, std::vector<Span>>> read_trace(
    const std::string& path) {
  const json trace = json::parse(test::contents_of(path));
  std::map<int, std::string> processes;
  std::map<int, std::pair<int, std::string>> threads;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      EXPECT_TRUE(processes.emplace(event["pid"], event["args"]["name"]).second);
    } else if (event["name"] == "thread_name") {
      EXPECT_TRUE(threads.try_emplace(event["tid"], event["pid"], event["args"]["name"]).second);
    }
  }
  std::map<std::string, std::map<std::string, std::vector<Span>>> ranks;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" || event["ph"] == "C") {
      continue;
    }
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["ts"].get<double>(), 0.0);
    EXPECT_GE(event["dur"].get<double>(), 0.0);
    EXPECT_FALSE(event["name"].get<std::string>().empty());
    const auto& [process, lane] = threads.at(event["tid"]);
    EXPECT_EQ(process, event["pid"]);
    const double begin = event["ts"];
    ranks[processes.at(process)][lane].push_back(
        {event["name"], begin, begin + event["dur"].get<double>(), event.value("args", json())});
  }
  return ranks;
}

// Spans of a lane nest: each ends before its holder does.
void expect_nested(const std::vector<Span>& spans, const std::string& lane) {
  constexpr double kRounding = 2e-3;  // microseconds that sums of decimal fractions may be off
  std::vector<Span> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back().end <= span.begin + kRounding) {
      open.pop_back();
    }
    if (!open.empty()) {
      ASSERT_LE(span.end, open.back().end + kRounding)
          << lane << ": " << span.name << " in " << open.back().name;
    }
    open.push_back(span);
  }
}

std::vector<Span> named(const std::vector<Span>& spans, const std::string& part) {
  std::vector<Span> found;
  std::ranges::copy_if(spans, std::back_inserter(found),
                       [&](const Span& span) { return span.name.find(part) != std::string::npos; });
  return found;
}

std::vector<Span> called(const std::vector<Span>& spans, const std::string& name) {
  std::vector<Span> found;
  std::ranges::copy_if(spans, std::back_inserter(found),
                       [&](const Span& span) { return span.name == name; });
  return found;
}

double sum_ms(const std::vector<Span>& spans) {
  double sum = 0;
  for (const Span& span : spans) {
    sum += (span.end - span.begin) / 1e3;
  }
  return sum;
}

TEST(RunRecords, TheTraceShowsComputeCommunicationAndWaitingOfEveryRank) {
  const TemporaryFolder folder;
  const std::string copy = folder.file("t.json");
  train(folder, {"--ranks", "2", "--steps", "8", "--bucket-mb", "0.5", "--trace", copy});
  EXPECT_EQ(test::contents_of(copy), test::contents_of(folder.file("run/trace.json")));
  const auto ranks = read_trace(copy);
  ASSERT_EQ(ranks.size(), 2u);
  for (const auto& [rank, lanes] : ranks) {
    for (const auto& [lane, spans] : lanes) {
      expect_nested(spans, rank + " " + lane);
    }
    const std::vector<Span>& compute = lanes.at("compute");
    EXPECT_EQ(named(compute, "step ").size(), 4u) << rank;
    EXPECT_EQ(named(compute, "step ").front().name, "step 2");
    EXPECT_EQ(called(compute, "forward").size(), 4u);
    EXPECT_FALSE(named(compute, "aten::addmm").empty()) << "operators by name";
    EXPECT_FALSE(named(compute, "Backward0").empty()) << "backward's too";
    for (const Span& bucket : lanes.at("communication")) {
      EXPECT_GT(bucket.arguments["bytes"].get<std::int64_t>(), 0) << bucket.name;
    }
  }
}

// At the four moments of the step that samples memory and of each traced one.
TEST(RunRecords, TheTraceCountsMemoryByCategoryOnEveryRank) {
  const TemporaryFolder folder;
  const json report = train(folder, {"--ranks", "2", "--steps", "8", "--stage", "zero2", "--trace",
                                     folder.file("t.json")});
  std::map<int, std::map<std::string, std::vector<json>>> counters;  // by process and name
  std::map<int, double> first_span;  // of each rank: another one may have begun its step before
  const json trace = json::parse(test::contents_of(folder.file("t.json")));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") {
      EXPECT_GE(event["ts"], 0.0);
      counters[event["pid"]][event["name"]].push_back(event);
    } else if (event["ph"] == "X") {
      const double begins = event["ts"].get<double>();
      const auto [first, is_new] = first_span.try_emplace(event["pid"].get<int>(), begins);
      first->second = is_new ? begins : std::min(first->second, begins);
    }
  }
  ASSERT_EQ(counters.size(), 2u);
  for (auto& [process, of_rank] : counters) {
    const auto rank = static_cast<std::size_t>(process - 1);
    ASSERT_EQ(of_rank["memory"].size(), 4u * 5u);
    ASSERT_EQ(of_rank["resident"].size(), 4u);
    const std::vector<std::string> moments{"at_rest", "after_forward", "last_hook", "after_update"};
    for (std::size_t i = 0; i < of_rank["memory"].size(); ++i) {
      const json& event = of_rank["memory"][i];
      const json& phase = report["memory"]["phases"][rank][moments[i % 4]];
      for (const char* category : {"parameters", "gradients", "optimizer", "transient"}) {
        EXPECT_EQ(event["args"][category], phase[category]) << category << " " << i;
      }
      EXPECT_EQ(i < 4, event["ts"] < first_span.at(process)) << i;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const json& phase = report["memory"]["phases"][rank][moments[i]];
      EXPECT_EQ(of_rank["memory"][i]["args"]["activations"], phase["activations"]);
      EXPECT_EQ(of_rank["resident"][i]["args"]["pss"], phase["pss"]);
    }
    EXPECT_GT(of_rank["memory"][5]["args"]["activations"].get<std::int64_t>(), 1'000'000);
  }
}

// With overlap the first bucket leaves before backward has ended, without it no bucket does; and
// what the waiting lane adds up to is what metrics.jsonl says was exposed.
TEST(RunRecords, TheTraceShowsOverlapAndExposedTime) {
  for (const std::string overlap : {"on", "off"}) {
    const TemporaryFolder folder;
    train(folder, {"--ranks", "2", "--steps", "6", "--bucket-mb", "0.5", "--overlap", overlap,
                   "--trace", folder.file("t.json")});
    auto ranks = read_trace(folder.file("t.json"));
    for (auto& [rank, lanes] : ranks) {
      const std::vector<Span> backward = called(lanes["compute"], "backward");
      ASSERT_EQ(backward.size(), 4u);
      for (const Span& span : backward) {
        const bool begun = std::ranges::any_of(lanes["communication"], [&](const Span& bucket) {
          return bucket.begin > span.begin && bucket.begin < span.end;
        });
        EXPECT_EQ(begun, overlap == "on") << rank;
      }
    }
    const std::vector<json> metrics = metrics_of(folder.file("run"));
    for (std::size_t step = 2; step < 6; ++step) {
      const Span whole = called(ranks["rank 0"]["compute"], "step " + std::to_string(step)).at(0);
      std::vector<Span> waits;
      for (const Span& wait : ranks["rank 0"]["waiting"]) {
        if (wait.begin >= whole.begin && wait.end <= whole.end) {
          waits.push_back(wait);
        }
      }
      EXPECT_NEAR(sum_ms(waits), metrics[step]["comm/exposed_ms"].get<double>(), 0.05);
    }
  }
}

}  // namespace
}  // namespace lockstep::train
