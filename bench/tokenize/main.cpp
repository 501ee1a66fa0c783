// lockstep-bench-tokenize: is our tokenizer as right as tiktoken, and how much faster?
#include "bench/common/machine.h"
#include "bench/common/program.h"
#include "bench/common/table.h"
#include "bench/tokenize/measure.h"
#include "bench/tokenize/options.h"

#include <cstdio>
#include <span>
#include <string>

namespace lockstep::bench {
namespace {

int run(std::span<const std::string> words) {
  const TokenizeOptions options = parse_tokenize(words);
  if (!options.print.empty()) {
    std::printf("%s", options.print.c_str());
    return 0;
  }
  std::vector<std::vector<std::string>> rows{{"round", "lockstep s", "tiktoken s", "ratio"}};
  const TokenizeAnswer answer = measure_tokenizing(options, [&](const TokenizeRound& round) {
    rows.push_back({std::to_string(rows.size()), fixed(round.lockstep_s, 3),
                    fixed(round.tiktoken_s, 3), fixed(round.lockstep_s / round.tiktoken_s, 3)});
  });
  std::printf("%s\n%lld bytes, %lld tokens, all equal; %d threads\n%sratio %s (%s to %s)\n",
              describe(this_machine()).c_str(), static_cast<long long>(answer.bytes),
              static_cast<long long>(answer.tokens), options.threads, table(rows).c_str(),
              fixed(answer.ratio.median, 3).c_str(), fixed(answer.ratio.least, 3).c_str(),
              fixed(answer.ratio.most, 3).c_str());
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  return lockstep::bench::run_program("lockstep bench tokenize", argc, argv, lockstep::bench::run);
}
