// The program `lockstep` as users meet it: a bad command line ends with 2 and one line that names
// the option and the fix.
#include "launch/started_program.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using lockstep::test::lines_of;
using lockstep::test::StartedProgram;
using Words = std::vector<std::string>;

struct BadLine {
  Words words;
  std::string names;  // what the line calls the culprit
  std::string hint;   // and the way out
};

void PrintTo(const BadLine& bad, std::ostream* out) {
  for (const std::string& word : bad.words) {
    *out << word << ' ';
  }
}

// Files that the table's command lines name; relative to a folder of the test's own.
class Folder {
 public:
  Folder() {
    fs::create_directories(folder_.file("folder"));
    folder_.write("text.txt", std::string(10'000, 'a'));
    folder_.write("short.txt", "to be");
    folder_.write("empty.txt", "");
    folder_.write("unknown.toml", "stpes = 3\n");
    folder_.write("later.toml", "# a comment\nprefetch = 1\n");
    folder_.write("value.toml", "seq = \"many\"\n");
    folder_.write("broken.toml", "[train]\nsteps = 3\n");
    folder_.write("unclosed.toml", "data = \"text\n");
  }
  std::string operator/(const std::string& name) const { return folder_.file(name); }

 private:
  test::TemporaryFolder folder_;
};

Words train(Words words) {
  words.insert(words.begin(), "train");
  return words;
}

// Behind a text that exists, so that the culprit is the only one.
Words train_on(const Folder& folder, Words words) {
  words.insert(words.begin(), {"train", "--data", folder / "text.txt"});
  return words;
}

std::vector<BadLine> bad_commands() {
  return {
      {{}, "lockstep: ", "see lockstep --help"},
      {{"trian"}, "lockstep trian", "did you mean train?"},
      {{"zzz"}, "lockstep zzz", "see lockstep --help"},
      {{"--verbose"}, "lockstep --verbose", "see lockstep --help"},
      {{"two\nlines"}, "two lines", "see lockstep --help"},
      {{"plan"}, "--params", "give --params 8e9 or --model"},
      {{"plan", "--params", "1e40"}, "--params", "as in 8e9 or 8B"},
      {{"plan", "--params", "8e9", "--ranks", "0"}, "--ranks", "from 1 to"},
      {{"plan", "--params", "4", "--ranks", "8"}, "--ranks", "one rank per parameter"},
      {{"plan", "--params", "8e9", "--hosts", "3"}, "--hosts", "a divisor of --ranks 8"},
      {{"plan", "--params", "8e9", "--hardware", "tpu"}, "--hardware tpu", "use one of a100"},
      {{"plan", "--port", "80"}, "--port", "is for --web"},
      {{"plan", "--web", "--port", "70000"}, "--port", "65535"},
      {{"plan", "--web", "--json"}, "--web", "give one of them"},
      {{"evaluate", "--run", "x"}, "lockstep evaluate", "not built yet"},
      {{"checkpoint"}, "lockstep checkpoint", "see lockstep checkpoint --help"},
      {{"checkpoint", "verfy", "x"}, "verfy", "did you mean verify?"},
      {{"checkpoint", "list"}, "list", "expected one folder"},
      {{"checkpoint", "verify", "/no/such"}, "/no/such", "name a --checkpoint folder"},
      {{"checkpoint", "export"}, "--run", "name the folder of a finished lockstep train"},
      {{"dash", "/no/such"}, "'/no/such' is no folder", "lockstep train --run"},
      {{"doctor", "--jsn"}, "--jsn", "did you mean --json?"},
      {{"bench"}, "lockstep bench", "collectives, train, tokenize or acceptance"},
      {{"bench", "colectives"}, "colectives", "did you mean collectives?"},
      {{"generate"}, "--run", "finished lockstep train"},
      {{"generate", "--run", "/no/such"}, "--run", "run folder of a finished"},
      {{"generate", "--run", "/tmp", "--bytes", "-1"}, "--bytes", "as in 400 or 1KB"},
      {{"generate", "--run", "/tmp", "--temperature", "nan"}, "--temperature", "at least 0"},
      {{"generate", "--run", "/tmp", "--seed", "x"}, "--seed", "a whole number"},
      {{"generate", "--run", "/tmp", "--promt", "x"}, "--promt", "did you mean --prompt?"},
      {{"launch"}, "no program", "after --"},
      {{"launch", "-n", "0", "--", "true"}, "--ranks", "from 1 to 1024"},
      {{"launch", "-n", "two", "--", "true"}, "--ranks", "from 1 to 1024"},
      {{"launch", "-n"}, "--ranks", "needs a value"},
      {{"launch", "-n", "2", "--max-restarts", "3", "--", "true"},
       "--max-restarts",
       "not built yet"},
      {{"launch", "-n", "2", "--min-ranks=1", "--", "true"}, "--min-ranks", "not built yet"},
      {{"launch", "-n", "3", "--hosts", "a,b", "--", "true"}, "--hosts", "a multiple of 2"},
      {{"launch", "--hosts", "a:x", "--", "true"}, "--hosts", "from 1 to 1024"},
      {{"launch", "--deadline", "0", "--", "true"}, "--deadline", "at least 1"},
      {{"launch", "--thread", "2", "--", "true"}, "--thread", "did you mean --threads?"},
      {{"launch", "--", "no-such-program"}, "'no-such-program'", "./no-such-program"},
  };
}

std::vector<BadLine> bad_values() {
  return {
      {train({"--ranks", "0"}), "--ranks", "from 1 to 1024"},
      {train({"--ranks", "-2"}), "--ranks", "from 1 to 1024"},
      {train({"--ranks", "2.5"}), "--ranks", "got '2.5'"},
      {train({"--ranks", "99999999999999999999"}), "--ranks", "from 1 to 1024"},
      {train({"--micro-batch", "0"}), "--micro-batch", "from 1 to"},
      {train({"--accumulate", "0"}), "--accumulate", "from 1 to"},
      {train({"--seq", "0"}), "--seq", "from 1 to"},
      {train({"--steps", "-1"}), "--steps", "from 0 to"},
      {train({"--steps", "20x"}), "--steps", "got '20x'"},
      {train({"--steps", ""}), "--steps", "got ''"},
      {train({"--steps"}), "--steps", "needs a value"},
      {train({"--seed", "-1"}), "--seed", "from 0 to"},
      {train({"--warmup", "-5"}), "--warmup", "from 0 to"},
      {train({"--dropout", "1"}), "--dropout", "below 1"},
      {train({"--dropout", "-0.1"}), "--dropout", "at least 0"},
      {train({"--clip", "-1"}), "--clip", "at least 0"},
      {train({"--clip", "nan"}), "--clip", "at least 0"},
      {train({"--lr", "inf"}), "--lr", "at least 0"},
      {train({"--lr", "fast"}), "--lr", "got 'fast'"},
      {train({"--weight-decay", "-1"}), "--weight-decay", "at least 0"},
      {train({"--bucket-mb", "-25"}), "--bucket-mb", "at least 0"},
      {train({"--overlap", "maybe"}), "--overlap", "on or off"},
      {train({"--precision", "fp16"}), "--precision", "f32 or bf16"},
      {train({"--threads", "0"}), "--threads", "from 1 to"},
      {train({"--deadline", "0"}), "--deadline", "at least 1"},
      {train({"--deadline", "soon"}), "--deadline", "as in 300 or 5m"},
      {train({"--sample", "lots"}), "--sample", "as in 400 or 1KB"},
      {train({"--eval-every", "x"}), "--eval-every", "a whole number"},
      {train({"--eval-batches", "-1"}), "--eval-batches", "from 0 to"},
      {train({"--stage", "zero4"}), "--stage", "single or ddp or zero1 or zero2 or zero3"},
      {train({"--reproducible=3"}), "--reproducible", "true or false"},
      {train({"--data", ""}), "--data", "a name or path"},
      {train({"--tokenizer", "vocab.json"}), "--tokenizer vocab.json", "use bytes, gpt2 or"},
      {train({"--optimizer", "adam"}), "--optimizer", "adamw or sgd"},
      {train({"--optimizer", "sgd", "--momentum", "1"}), "--momentum", "below 1"},
      {train({"--momentum", "0.9"}), "--momentum 0.9", "use --optimizer sgd"},
  };
}

std::vector<BadLine> not_built() {
  std::vector<BadLine> lines{
      {train({"--stage", "hybrid"}), "--stage hybrid",
       "not built yet; use single or ddp or zero1 or zero2 or zero3"},
      {train({"--stage", "async"}), "--stage async",
       "not built yet; use single or ddp or zero1 or zero2 or zero3"},
      {train({"--reshard", "host"}), "--reshard host", "not built yet; use always or never"},
      {train({"--ranks", "2", "--transport", "mpi", "--stage", "zero3"}), "--transport mpi",
       "use --stage zero2"},
      {train({"--algorithm", "ring"}), "--algorithm ring", "not built yet; use auto or direct"},
  };
  for (const char* const name : {"--hosts", "--prefetch", "--shard-size", "--max-staleness",
                                 "--straggle", "--noise-scale", "--allow-partial"}) {
    lines.push_back({train({name}), name, "not built yet; "});
  }
  return lines;
}

std::vector<BadLine> bad_combinations(const Folder& folder) {
  return {
      {train({"--stpes", "3"}), "--stpes", "did you mean --steps?"},
      {train({"--micro_batch=3"}), "--micro_batch", "did you mean --micro-batch?"},
      {train({"--qqqqqqqq"}), "--qqqqqqqq", "see lockstep train --help"},
      {train({"corpus.txt"}), "'corpus.txt'", "options begin with --"},
      {train({"--model", "gpt5"}), "--model gpt5", "use one of gpt2-tiny"},
      {train({"--model", "llama-tiny", "--dropout", "0.1"}), "--dropout 0.1", "use --dropout 0"},
      {train({"--seq", "257"}), "--seq 257", "use --seq 256 or less"},
      {train({"--model", "gpt2-124m", "--seq", "1025"}), "--seq 1025", "use --seq 1024 or less"},
      {train({"--stage", "single", "--ranks", "2"}), "--stage single",
       "use --stage ddp, or --ranks 1"},
      {train({"--accumulate-in", "shard"}), "--accumulate-in shard", "use --stage zero2"},
      {train({"--unit-blocks", "2"}), "--unit-blocks", "use --stage zero3"},
      {train({"--reshard", "always"}), "--reshard", "use --stage zero3"},
      {train({"--reproducible", "--ranks", "3"}), "--reproducible", "nearest that works is 2"},
      {train({"--reproducible", "--ranks", "2", "--accumulate", "3"}), "--reproducible",
       "nearest that works is 4: --ranks 2 --accumulate 2"},
      {train({"--micro-batch", "1000000000", "--accumulate", "1000000000"}), "--micro-batch",
       "lower one of them"},
      {train({"--data", "/no/such/text"}), "--data /no/such/text", "give a text file"},
      {train({"--data", folder / "folder"}), "--data", "is a folder; expected one text file"},
      {train({"--data", folder / "empty.txt"}), "--data", "is empty"},
      {train({"--data", folder / "short.txt"}), "--data", "a longer text or a smaller --seq"},
      {train_on(folder, {"--report", "/no/such/r.json"}), "--report", "make it first"},
      {train_on(folder, {"--report", folder / "folder"}), "--report", "name a file in it"},
      {train_on(folder, {"--trace", folder / "folder"}), "--trace", "name a file in it"},
      {train_on(folder, {"--trace", "/no/such/t.json"}), "--trace", "make it first"},
      {train_on(folder, {"--report", folder / "text.txt/r.json"}), "--report", "does not exist"},
      {train_on(folder, {"--run", folder / "text.txt"}), "--run", "choose another folder"},
      {train_on(folder, {"--run", folder / "text.txt/below"}), "--run", "choose another folder"},
      {train_on(folder, {"--ranks", "2", "--device-memory", "1MB"}), "--stage ddp",
       "no stage fits: use a smaller model or more --ranks, or --force"},
      {train_on(folder, {"--device-memory", "0"}), "--device-memory", "as in 80GB"},
      {train_on(folder, {"--resume"}), "--resume", "needs --checkpoint DIR"},
      {train_on(folder, {"--checkpoint-every", "5"}), "--checkpoint-every", "--checkpoint DIR"},
      {train_on(folder, {"--checkpoint", folder / "text.txt"}), "--checkpoint",
       "choose another folder"},
      {train_on(folder, {"--checkpoint", folder / "folder", "--stop-at", "21"}), "--stop-at 21",
       "give at most that"},
      {train({"--config", "/no/such.toml"}), "--config", "like a run's config.toml"},
      {train({"--config", folder / "folder"}), "--config", "like a run's config.toml"},
      {train({"--config", folder / "unknown.toml"}), "line 1: stpes", "did you mean steps?"},
      {train({"--config", folder / "later.toml"}), "line 2: prefetch", "not built yet"},
      {train({"--config", folder / "value.toml"}), "line 1: --seq", "a whole number"},
      {train({"--config", folder / "broken.toml"}), "line 1", "expected key = value"},
      {train({"--config", folder / "unclosed.toml"}), "line 1", "closing quote"},
  };
}

std::vector<BadLine> all_bad_lines(const Folder& folder) {
  std::vector<BadLine> lines = bad_commands();
  for (const auto& more : {bad_values(), not_built(), bad_combinations(folder)}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

TEST(Lockstep, bad_command_lines_end_with_2_and_one_line_that_helps) {
  const Folder folder;
  const std::vector<BadLine> lines = all_bad_lines(folder);
  ASSERT_GE(lines.size(), 40u);
  for (const BadLine& bad : lines) {
    SCOPED_TRACE(::testing::PrintToString(bad));
    Words words{LOCKSTEP_PROGRAM};
    words.insert(words.end(), bad.words.begin(), bad.words.end());
    StartedProgram program(words);
    EXPECT_EQ(program.wait(), 2);
    const std::string error = program.error();
    EXPECT_EQ(lines_of(error).size(), 1u) << error;
    EXPECT_TRUE(error.ends_with('\n'));
    EXPECT_NE(error.find(bad.names), std::string::npos) << error;
    EXPECT_NE(error.find(bad.hint), std::string::npos) << error;
    EXPECT_EQ(program.output(), "");
  }
}

TEST(Lockstep, every_command_has_help_and_version) {
  for (const char* const command : {"train", "launch", "generate", "bench", "plan", "evaluate",
                                    "checkpoint", "dash", "doctor"}) {
    StartedProgram help({LOCKSTEP_PROGRAM, command, "--help"});
    EXPECT_EQ(help.wait(), 0) << command;
    EXPECT_NE(help.output(), "") << command;
    EXPECT_EQ(help.error(), "") << command;
    StartedProgram version({LOCKSTEP_PROGRAM, command, "--version"});
    EXPECT_EQ(version.wait(), 0) << command;
    EXPECT_EQ(version.output(), "lockstep " LOCKSTEP_VERSION "\n") << command;
  }
  StartedProgram help({LOCKSTEP_PROGRAM, "--help"});
  EXPECT_EQ(help.wait(), 0);
  EXPECT_NE(help.output().find("lockstep COMMAND"), std::string::npos);
  StartedProgram version({LOCKSTEP_PROGRAM, "--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.output(), "lockstep " LOCKSTEP_VERSION "\n");
}

TEST(Lockstep, a_missing_program_beside_it_is_one_line) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  fs::copy_file(LOCKSTEP_PROGRAM, folder / "lockstep");
  const Folder files;
  for (const Words& words :
       {Words{"bench", "train"}, Words{"train", "--data", files / "text.txt"}}) {
    Words all{(folder / "lockstep").string()};
    all.insert(all.end(), words.begin(), words.end());
    StartedProgram program(all);
    EXPECT_EQ(program.wait(), 1);
    EXPECT_EQ(lines_of(program.error()).size(), 1u) << program.error();
    EXPECT_NE(program.error().find("is missing; it needs LibTorch"), std::string::npos);
  }
}

TEST(Lockstep, plan_answers_as_a_table_as_json_and_with_its_formulas) {
  const Words question{LOCKSTEP_PROGRAM, "plan", "--params", "1e9", "--ranks", "8"};
  for (const auto& [form, shown] :
       std::vector<std::pair<std::string, std::string>>{{"--overlap=on", "3.75"},
                                                        {"--json", "\"total\": 3750000000"},
                                                        {"--explain", "3.75 GB = 3.49 GiB"}}) {
    Words words = question;
    words.push_back(form);
    StartedProgram program(words);
    EXPECT_EQ(program.wait(), 0) << program.error();
    EXPECT_NE(program.output().find(shown), std::string::npos) << program.output();
    EXPECT_EQ(program.error(), "");
  }
}

// Stands beside `lockstep` where lockstep-train would, and shows what it was given.
TEST(Lockstep, train_starts_its_ranks_with_the_same_words) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  fs::copy_file(LOCKSTEP_PROGRAM, folder / "lockstep");
  std::ofstream(folder / "lockstep-train")
      << "#!/bin/sh\nif [ -t 0 ]; then exit 9; fi\n"
         "echo $RANK/$WORLD_SIZE threads=$OMP_NUM_THREADS deadline=$LOCKSTEP_DEADLINE \"$@\"\n";
  fs::permissions(folder / "lockstep-train", fs::perms::owner_all);
  const Folder files;
  StartedProgram program({(folder / "lockstep").string(), "train", "--ranks", "2", "--data",
                          files / "text.txt", "--reproducible", "--deadline", "2m"});
  EXPECT_EQ(program.wait(), 0) << program.error();
  const std::string rest = "/2 threads=1 deadline=120 train --ranks 2 --data " +
                           (files / "text.txt") + " --reproducible --deadline 2m\n";
  // Rank 0 writes straight to the terminal, the others behind their number.
  EXPECT_NE(("\n" + program.output()).find("\n0" + rest), std::string::npos) << program.output();
  EXPECT_NE(("\n" + program.output()).find("\n[1] 1" + rest), std::string::npos);
}

TEST(Lockstep, bench_and_generate_become_the_programs_beside_it) {
  const test::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  fs::copy_file(LOCKSTEP_PROGRAM, folder / "lockstep");
  for (const char* const name : {"lockstep-bench-train", "lockstep-train"}) {
    std::ofstream(folder / name) << "#!/bin/sh\necho \"$@\"\nexit 7\n";
    fs::permissions(folder / name, fs::perms::owner_all);
  }
  StartedProgram bench(
      {(folder / "lockstep").string(), "bench", "train", "--ranks", "2", "--help"});
  EXPECT_EQ(bench.wait(), 7);
  EXPECT_EQ(bench.output(), "--ranks 2 --help\n");
  StartedProgram generate({(folder / "lockstep").string(), "generate", "--run", folder.string()});
  EXPECT_EQ(generate.wait(), 7);
  EXPECT_EQ(generate.output(), "generate --run " + folder.string() + "\n");
}

}  // namespace
}  // namespace lockstep::cli
