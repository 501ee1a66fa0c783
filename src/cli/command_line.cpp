#include "cli/command_line.h"

#include "lockstep/error.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace lockstep::cli {
namespace {

std::string long_name(const Flag& flag) { return flag.name.substr(flag.name.find("--")); }

// Letters to insert, delete or replace to get from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// Everything CLI11 needs to know, and where it puts what it found.
struct Parser {
  explicit Parser(const Command& command) : app(command.purpose, command.name) {
    app.set_help_flag("-h,--help", "Print this and end");
    app.set_version_flag("--version", version_text(), "Print the version and end");
    app.allow_extras();
    app.prefix_command(command.rest == Rest::program);
    for (const Flag& flag : command.flags) {
      const std::string name = long_name(flag);
      if (flag.value.empty()) {
        app.add_flag(flag.name, switches[name], flag.help);
      } else {
        app.add_option(flag.name, values[name], flag.help)
            ->type_name(flag.value)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
      }
    }
  }

  CLI::App app;
  std::map<std::string, std::string> values;
  std::map<std::string, std::string> switches;
};

// CLI11 says "--steps: 1 required N missing" and the like.
[[noreturn]] void refuse(const Command& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::string name = text.substr(0, text.find(':'));
  for (const Flag& flag : command.flags) {
    if (long_name(flag) == name) {
      throw UsageError(name + ": " +
                       (flag.value.empty() ? "takes no value; write it alone"
                                           : "needs a value; write " + name + " " + flag.value));
    }
  }
  throw UsageError(text.substr(0, text.find('\n')));
}

[[noreturn]] void refuse_unknown(const Command& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const NotBuilt& flag : command.not_built) {
    if (flag.name == name) {
      throw UsageError(name + ": not built yet; " + flag.way_out);
    }
  }
  if (!word.starts_with('-')) {
    throw UsageError("unexpected argument '" + word + "'; options begin with --, see " +
                     command.name + " --help");
  }
  std::vector<std::string> known{"--help", "--version"};
  for (const Flag& flag : command.flags) {
    known.push_back(long_name(flag));
  }
  throw UsageError(name + ": unknown option" + suggestion(name, known) + "; see " + command.name +
                   " --help");
}

// Of the words that CLI11 left over: the first one that is none of the command's.
void check_rest(const Command& command, const std::vector<std::string>& rest) {
  if (!rest.empty() && (command.rest == Rest::none || rest.front().starts_with('-'))) {
    refuse_unknown(command, rest.front());
  }
  if (command.rest == Rest::names) {
    for (const std::string& word : rest) {
      if (word.starts_with('-')) {
        refuse_unknown(command, word);
      }
    }
  }
}

CommandLine collect(const Command& command, Parser& parser) {
  CommandLine line;
  for (const Flag& flag : command.flags) {
    const std::string name = long_name(flag);
    if (parser.app.count(name) == 0) {
      continue;
    }
    line.given.push_back({name, (flag.value.empty() ? parser.switches : parser.values)[name]});
  }
  return line;
}

}  // namespace

std::optional<std::string> CommandLine::value_of(std::string_view name) const {
  const auto found = std::ranges::find(given, name, &Given::name);
  return found == given.end() ? std::nullopt : std::optional(found->value);
}

CommandLine parse(const Command& command, std::span<const std::string> arguments) {
  Parser parser(command);
  try {
    // CLI11 takes the last word first.
    parser.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return {.print = parser.app.help(), .given = {}, .rest = {}};
  } catch (const CLI::CallForVersion&) {
    return {.print = version_text() + "\n", .given = {}, .rest = {}};
  } catch (const CLI::ParseError& error) {
    refuse(command, error);
  }
  CommandLine line = collect(command, parser);
  line.rest = parser.app.remaining();
  if (!line.rest.empty() && line.rest.front() == "--") {
    line.rest.erase(line.rest.begin());
  }
  check_rest(command, line.rest);
  return line;
}

std::string suggestion(std::string_view word, std::span<const std::string> known) {
  std::string nearest;
  std::size_t distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t candidate_distance = edit_distance(word, candidate);
    if (candidate_distance < distance) {
      nearest = candidate;
      distance = candidate_distance;
    }
  }
  return nearest.empty() ? "" : " (did you mean " + nearest + "?)";
}

std::string version_text() { return "lockstep " LOCKSTEP_VERSION; }

}  // namespace lockstep::cli
