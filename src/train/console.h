// What `lockstep train` shows: a header, the steps as they happen, the outcome.
#pragma once

#include "train/options.h"
#include "train/report.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace lockstep::train {

struct Header {
  Options options;
  int threads = 1;
  std::int64_t parameters = 0;
  std::int64_t training_tokens = 0;
  std::int64_t validation_tokens = 0;
  Prediction predicted;
  std::string run_folder;
};

// Writes to a stream: on a terminal one live line, else plain lines about every two seconds.
class Console {
 public:
  explicit Console(std::FILE* stream);

  void header(const Header& header);
  void note(const std::string& line);
  // How many of a text's bytes are tokenised; more than once, the last time with all of them.
  void tokenising(std::int64_t done_bytes, std::int64_t total_bytes);
  void step(const StepResult& step, const Options& options);
  void validation(const ValidationPoint& point);
  // Memory next to the formula, speed, and what to change.
  void outcome(const Report& report);

 private:
  using Clock = std::chrono::steady_clock;
  void print(const std::string& text);
  void end_live_line();
  void show_live(const std::string& text, double done);
  // Whether the step with number `done` (from 1) is to be shown now.
  bool due(std::int64_t done, const Options& options);

  std::FILE* stream_;
  bool terminal_;
  bool live_line_ = false;
  std::optional<Clock::time_point> tokenising_since_;
  std::int64_t begun_at_ = 0;  // the first step shown, from 1
  Clock::time_point first_step_{};
  Clock::time_point shown_{};
};

// `text` behind a bar that is `done` (0 … 1) full, in one line of a terminal that is `columns`
// wide: the bar gives way first, then the text's end.
std::string live_line(const std::string& text, double done, std::int64_t columns);

// "1,234,567".
std::string grouped(std::int64_t number);
// "1h02m", "3m05s", "12s".
std::string duration_text(double seconds);

}  // namespace lockstep::train
