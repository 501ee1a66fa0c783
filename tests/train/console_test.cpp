#include "train/console.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

namespace lockstep::train {
namespace {

class Shown {
 public:
  Shown() : file_(std::tmpfile()) {}
  ~Shown() { std::fclose(file_); }
  std::FILE* stream() { return file_; }
  std::string text() {
    std::rewind(file_);
    std::string result;
    for (int letter = 0; (letter = std::fgetc(file_)) != EOF;) {
      result += static_cast<char>(letter);
    }
    return result;
  }

 private:
  std::FILE* file_;
};

TEST(ConsoleText, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(124439808), "124,439,808");
  EXPECT_EQ(grouped(-1234), "-1,234");
}

TEST(ConsoleText, ScalesDurations) {
  EXPECT_EQ(duration_text(12.4), "12s");
  EXPECT_EQ(duration_text(185), "3m05s");
  EXPECT_EQ(duration_text(3725), "1h02m");
  EXPECT_EQ(duration_text(-1), "0s");
}

TEST(Console, ATextThatIsTokenisedQuicklyIsOnePlainLine) {
  Shown shown;
  Console console(shown.stream());
  for (const std::int64_t done : {0, 1'000'000, 2'000'000, 5'060'000}) {
    console.tokenising(done, 5'060'000);
  }
  EXPECT_EQ(shown.text(), "tokenised   5.06 MB in 0s\n");
}

TEST(LiveLine, NeverWraps) {
  const std::string text(50, 'x');
  EXPECT_EQ(live_line(text, 0.5, 200), "[############............] " + text);
  for (std::int64_t columns = 0; columns < 120; ++columns) {
    EXPECT_LE(static_cast<std::int64_t>(live_line(text, 1.0, columns).size()),
              std::max<std::int64_t>(0, columns - 1));
  }
  EXPECT_EQ(live_line(text, 0.5, 52), text);
  EXPECT_EQ(live_line(text, 1.0, 60), "[######] " + text);
  EXPECT_EQ(live_line(text, 0.0, 11), std::string(10, 'x'));
}

TEST(Console, HeaderTellsWhatIsToCome) {
  Shown shown;
  Options options;
  options.ranks = 2;
  options.accumulate = 2;
  Console(shown.stream())
      .header({.options = options,
               .threads = 1,
               .parameters = 858'880,
               .training_tokens = 900,
               .validation_tokens = 100,
               .predicted = {.ledger = {3'435'520, 3'435'520, 6'871'040, 0},
                             .step = {.sent = 1'717'760, .received = 1'718'000}},
               .run_folder = "runs/x"});
  const std::string text = shown.text();
  for (const char* part :
       {"gpt2-tiny, 858,880 parameters", "2 ranks x 1 thread, stage ddp, precision f32",
        "900 tokens to train on, 100 for validation",
        "2 ranks x 2 micro-batches of 2 sequences of 256 tokens = 2,048 tokens per step",
        "parameters   gradients   optimizer   transient       total",
        "3.44 MB     3.44 MB     6.87 MB         0 B    13.74 MB", "1.72 MB sent", "runs/x"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Console, ShowsFirstAndLastStepInPlainLines) {
  Shown shown;
  Options options;
  options.steps = 3;
  Console console(shown.stream());
  for (std::int64_t step = 0; step < 3; ++step) {
    StepResult result;
    result.step = step;
    result.loss = 5.5 - static_cast<double>(step);
    result.ms = 10;
    console.step(result, options);
  }
  const std::string text = shown.text();
  EXPECT_NE(text.find("step 1/3  loss 5.5000"), std::string::npos) << text;
  EXPECT_EQ(text.find("step 2/3"), std::string::npos) << text;  // two seconds have not passed
  EXPECT_NE(text.find("step 3/3  loss 3.5000"), std::string::npos) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos) << "not a terminal";
}

TEST(Console, EndsWithSpeedAndAdvice) {
  Report report;
  report.options.micro_batch = 4;
  report.flops_per_step = 4e9;
  report.peak_flops = 8e10;
  report.history.step_ms = {100};
  report.advice = {"do this", "do that"};
  Shown shown;
  Console(shown.stream()).outcome(report);
  EXPECT_EQ(shown.text(),
            "speed       100.0 ms per step, 10,240 tokens/s, MFU 50.0 % of the 80 GFLOP/s that "
            "matrix products reach here\n"
            "advice      do this\n"
            "advice      do that\n");
}

TEST(Console, ShowsMemoryOfTheFullestRankNextToTheFormula) {
  Report report;
  report.predicted.ledger = {3'000'000, 2'000'000, 6'000'000, 0};
  report.ranks.resize(2);
  report.ranks[0].phases[0].resident = 1;
  RankRecord& most = report.ranks[1];
  most.shared_at_rest = 4'000'000;
  most.phases[0] = {.held = {3'100'000, 2'000'000, 6'000'000, 0}, .resident = 11'000'000};
  most.phases[1] = {.held = {3'100'000, 2'000'000, 6'000'000, 500'000},
                    .activations = 7'000'000,
                    .activations_peak = 8'000'000,
                    .resident = 19'000'000};
  report.shared_allocated = 4'100'000;
  Shown shown;
  Console(shown.stream()).outcome(report);
  EXPECT_EQ(shown.text(),
            "memory        parameters   gradients   optimizer   transient activations     at most"
            "    resident\n"
            "  formula        3.00 MB     2.00 MB     6.00 MB         0 B\n"
            "  at rest        3.10 MB     2.00 MB     6.00 MB         0 B         0 B         0 B"
            "    11.00 MB\n"
            "  forward        3.10 MB     2.00 MB     6.00 MB    500.0 KB     7.00 MB     8.00 MB"
            "    19.00 MB\n"
            "  shared    of all ranks 4.00 MB resident, of 4.10 MB allocated\n");
}

TEST(Console, SaysWhenAStepWasSkipped) {
  Shown shown;
  Options options;
  options.steps = 1;
  StepResult result;
  result.skipped = true;
  Console(shown.stream()).step(result, options);
  EXPECT_NE(shown.text().find("skipped: a gradient was not finite"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::train
