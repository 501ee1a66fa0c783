#include "cli/program_checks.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::cli {
namespace {

using launch::Captured;

Captured printed(const std::string& output) { return {.output = output, .error = ""}; }

Captured failed(const std::string& error) { return {.exit_code = 1, .output = "", .error = error}; }

void expect(const Finding& actual, Verdict verdict, const std::string& found,
            const std::string& fix = "") {
  EXPECT_EQ(actual.verdict, verdict) << actual.found;
  EXPECT_NE(actual.found.find(found), std::string::npos) << actual.found;
  EXPECT_NE(actual.fix.find(fix), std::string::npos) << actual.fix;
  EXPECT_TRUE(verdict == Verdict::ok || !actual.fix.empty()) << "needs a fix";
}

TEST(ProgramChecks, LibtorchIsFoundMissingOrBroken) {
  expect(judge_libtorch(printed(R"({"version":"2.13.0","path":"/a/libtorch_cpu.so",)"
                                R"("kernels":"AVX512"})")),
         Verdict::ok, "2.13.0, kernels for AVX512, /a/libtorch_cpu.so");
  expect(judge_libtorch(std::nullopt), Verdict::warn, "not found", "scripts/setup");
  expect(judge_libtorch(failed("libtorch.so: cannot open shared object file\nmore")), Verdict::fail,
         "does not start: libtorch.so: cannot open shared object file", "./quickstart");
  expect(judge_libtorch(printed("no JSON")), Verdict::fail, "does not start");
}

TEST(ProgramChecks, MpiIsNamedOrNone) {
  expect(judge_mpi(printed("mpirun (Open MPI) 4.1.4\n\nReport bugs")), Verdict::ok,
         "mpirun (Open MPI) 4.1.4 (not used");
  expect(judge_mpi(std::nullopt), Verdict::ok, "none");
  expect(judge_mpi(failed("broken")), Verdict::ok, "none");
}

TEST(ProgramChecks, CollectivesAreRightSlowOrFailed) {
  const std::string answer = R"([{"bytes":16000000,"ms":1.25,"floor_share":)";
  expect(judge_collectives(printed(answer + "0.9}]")), Verdict::ok,
         "all_reduce of 16 MB on 2 ranks is right, 1.25 ms, 0.90 of plain copies' speed");
  expect(judge_collectives(printed(answer + "0.2}]")), Verdict::warn, "0.20 of", "run it again");
  expect(judge_collectives(std::nullopt), Verdict::warn, "not tested", "./quickstart");
  expect(judge_collectives(failed("rank 1: sum is wrong")), Verdict::fail, "rank 1: sum is wrong",
         "bug");
  expect(judge_collectives(printed("[]")), Verdict::fail, "ended with exit code 0");
  Captured slow;
  slow.timed_out = true;
  slow.seconds = 10;
  expect(judge_collectives(slow), Verdict::warn, "did not end within 10 s", "run it again");
}

TEST(ProgramChecks, TrainingNeedsItsReport) {
  Captured program;
  program.seconds = 2.5;
  expect(judge_training(program, R"({"losses":[5.545]})"), Verdict::ok,
         "loss 5.545, same weights on both, 2.5 s in all");
  expect(judge_training(program, ""), Verdict::fail, "a step of 2 ranks failed");
  expect(judge_training(program, R"({"losses":[]})"), Verdict::fail, "failed");
  expect(judge_training(failed("lockstep train: rank 1: killed"), R"({"losses":[1.0]})"),
         Verdict::fail, "rank 1: killed", "bug");
}

}  // namespace
}  // namespace lockstep::cli
