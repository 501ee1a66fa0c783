#include "cli/train_options.h"

#include "cli/config_file.h"
#include "lockstep/error.h"
#include "train/option_table.h"

#include <algorithm>

namespace lockstep::cli {
namespace {

const train::OptionField* find_field(std::string_view name) {
  const auto fields = train::option_fields();
  const auto found = std::ranges::find(fields, name, &train::OptionField::name);
  return found == fields.end() ? nullptr : &*found;
}

Command train_syntax() {
  Command command{.name = "lockstep train",
                  .purpose =
                      "Trains a model on --ranks processes of this host.\n"
                      "  lockstep train --ranks 2 --model gpt2-tiny --data text --steps 100",
                  .flags = {},
                  .not_built = {},
                  .rest = Rest::none};
  for (const train::OptionField& field : train::option_fields()) {
    command.flags.push_back({"--" + field.name, field.value, field.help});
  }
  command.flags.push_back(
      {"--config", "FILE", "Options from a run's config.toml; the command line wins"});
  for (const train::NotBuiltOption& option : train::options_not_built()) {
    command.not_built.push_back({"--" + option.name, option.way_out});
  }
  return command;
}

[[noreturn]] void refuse_key(const std::string& path, const ConfigEntry& entry) {
  const std::string where =
      "--config " + path + " line " + std::to_string(entry.line) + ": " + entry.key;
  for (const train::NotBuiltOption& option : train::options_not_built()) {
    if (option.name == entry.key) {
      throw UsageError(where + ": not built yet; " + option.way_out);
    }
  }
  std::vector<std::string> known;
  for (const train::OptionField& field : train::option_fields()) {
    known.push_back(field.name);
  }
  throw UsageError(where + ": unknown option" + suggestion(entry.key, known) +
                   "; see lockstep train --help");
}

void apply_config(const std::string& path, train::Options& options) {
  for (const ConfigEntry& entry : read_config(path)) {
    const train::OptionField* const field = find_field(entry.key);
    if (field == nullptr) {
      refuse_key(path, entry);
    }
    try {
      field->set(options, entry.value);
    } catch (const UsageError& error) {
      throw UsageError("--config " + path + " line " + std::to_string(entry.line) + ": " +
                       error.what());
    }
  }
}

}  // namespace

TrainRequest parse_train(std::span<const std::string> arguments, int ranks) {
  const CommandLine line = parse(train_syntax(), arguments);
  TrainRequest request{.print = line.print, .options = {}};
  request.options.ranks = ranks;
  if (const auto config = line.value_of("--config")) {
    apply_config(*config, request.options);
  }
  for (const Given& given : line.given) {
    if (const train::OptionField* const field = find_field(given.name.substr(2))) {
      field->set(request.options, given.value);
    }
  }
  return request;
}

}  // namespace lockstep::cli
