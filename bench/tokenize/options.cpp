#include "bench/tokenize/options.h"

#include "bench/common/machine.h"
#include "bench/train/options.h"
#include "cli/command_line.h"
#include "cli/values.h"

namespace lockstep::bench {
namespace {

cli::Command syntax() {
  return {
      .name = "lockstep bench tokenize",
      .purpose =
          "Encodes a text in which no line comes twice with GPT-2's tokenizer, ours and PyPI's\n"
          "tiktoken in turns. Compares all tokens first, then times both on as many threads:\n"
          "from bytes in memory to ids in memory.",
      .flags = {{"--bytes", "N", "Of the text (100MB)"},
                {"--threads", "N", "Of either side (the machine's cores)"},
                {"--rounds", "N", "In each of which both encode the text (3)"},
                {"--python", "FILE", "Interpreter with tiktoken (.deps/venv's)"}},
      .not_built = {},
      .rest = cli::Rest::none};
}

}  // namespace

TokenizeOptions parse_tokenize(std::span<const std::string> words) {
  const cli::CommandLine line = cli::parse(syntax(), words);
  TokenizeOptions options;
  options.print = line.print;
  if (!options.print.empty()) {
    return options;
  }
  constexpr std::int64_t kMostBytes = 1'000'000'000;
  options.bytes = cli::bytes_value(line, "--bytes", kMostBytes).value_or(options.bytes);
  options.threads = static_cast<int>(
      cli::whole_value(line, "--threads", {1, 1024}).value_or(this_machine().cores));
  options.rounds = cli::whole_value(line, "--rounds", {1, 1000}).value_or(options.rounds);
  options.python = line.value_of("--python").value_or(default_python());
  check_python(options.python);
  return options;
}

}  // namespace lockstep::bench
