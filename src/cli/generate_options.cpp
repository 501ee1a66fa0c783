#include "cli/generate_options.h"

#include "cli/command_line.h"
#include "cli/values.h"
#include "lockstep/error.h"

#include <limits>

namespace lockstep::cli {
namespace {

Command generate_syntax() {
  return {.name = "lockstep generate",
          .purpose =
              "Continues a text with the model of a finished run.\n"
              "  lockstep generate --run runs/first --prompt \"To be\"",
          .flags = {{"--run", "DIR", "The run folder"},
                    {"--prompt", "TEXT", "What the text begins with (nothing)"},
                    {"--bytes", "N", "Bytes to generate (200)"},
                    {"--seed", "N", "Of the draws (1)"},
                    {"--temperature", "X", "Divides the logits; 0 takes the likeliest byte (1)"}},
          .not_built = {},
          .rest = Rest::none};
}

}  // namespace

GenerateRequest parse_generate(std::span<const std::string> arguments) {
  constexpr std::int64_t kMostBytes = 1'000'000'000;
  const CommandLine line = parse(generate_syntax(), arguments);
  GenerateRequest request{.print = line.print, .options = {}};
  if (!request.print.empty()) {
    return request;
  }
  train::GenerateOptions& options = request.options;
  options.run_directory = line.value_of("--run").value_or("");
  if (options.run_directory.empty()) {
    throw UsageError("--run: is needed; name the folder of a finished lockstep train");
  }
  options.prompt = line.value_of("--prompt").value_or("");
  options.bytes = bytes_value(line, "--bytes", kMostBytes).value_or(options.bytes);
  const auto seed = whole_value(line, "--seed", {0, std::numeric_limits<std::int64_t>::max()});
  options.seed = seed ? static_cast<std::uint64_t>(*seed) : options.seed;
  options.temperature = decimal_value(line, "--temperature").value_or(options.temperature);
  return request;
}

}  // namespace lockstep::cli
