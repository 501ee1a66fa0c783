#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/sibling.h"
#include "lockstep/error.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace lockstep::cli {
namespace {

constexpr const char* kHelp =
    "Answers one question each; every bench verifies its results before it times them.\n"
    "Usage: lockstep bench QUESTION [OPTIONS]     (lockstep bench QUESTION --help for its "
    "options)\n"
    "\n"
    "  collectives   How fast are the collectives, against the floor of bytes they must move?\n"
    "  train         What does a training step cost, against every rank training alone?\n"
    "  tokenize      Is our tokenizer as right as tiktoken, and how much faster?\n"
    "  acceptance    Does this machine hold every bound that the project promises?\n";

}  // namespace

int run_bench(Words arguments) {
  const std::vector<std::string> questions{"collectives", "train", "tokenize", "acceptance"};
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "--help" || first == "-h") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (first == "--version") {
    std::printf("%s\n", version_text().c_str());
    return 0;
  }
  if (std::ranges::find(questions, first) == questions.end()) {
    throw UsageError((first.empty() ? "which bench?" : first + ": no such bench") +
                     suggestion(first, questions) +
                     "; use collectives, train, tokenize or acceptance");
  }
  become_sibling("lockstep-bench-" + first, {arguments.begin() + 1, arguments.end()});
}

}  // namespace lockstep::cli
