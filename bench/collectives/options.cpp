#include "bench/collectives/options.h"

#include "base/quantity.h"
#include "bench/common/program.h"
#include "cli/values.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>

namespace lockstep::bench {
namespace {

constexpr std::array kCollectives{Collective::all_reduce, Collective::reduce_scatter,
                                  Collective::all_gather};

cli::Command syntax() {
  return {
      .name = "lockstep bench collectives",
      .purpose =
          "Verifies collectives bit for bit, then times them on this host.\n"
          "X is the bytes of one rank's whole buffer. Up to 1 MB the buffers stay in the cache,\n"
          "above it they rotate through four times the last-level cache. Each repeat starts at a\n"
          "barrier and lasts until the last rank is done. 'of floor' is the time in which the\n"
          "bytes that must move (all_reduce 2 X, reduce_scatter X + X/P, all_gather X, per rank)\n"
          "pass at the speed of plain copies of the same footprint on the same ranks, divided by\n"
          "the time measured; a reduction in place can beat a copy.",
      .flags = {{"--ranks", "N", "Ranks to start (2)"},
                {"--sizes", "LIST", "Values of X (4KB,1MB,25MB,100MB)"},
                {"--ops", "LIST", "Of all_reduce, reduce_scatter, all_gather (all of them)"},
                {"--algorithms", "LIST",
                 "Of auto, direct, pairwise, ring, halving-doubling, tree, coordinator (auto)"},
                {"--dtype", "TYPE", "f32 or bf16 (f32)"},
                {"--plain", "", "Plain spans, staged through shared memory, too"},
                {"--json", "", "Print a JSON array; the machine goes to standard error"}},
      .not_built = {{"--peers", "run the programs of other libraries by hand"},
                    {"--plot", "draw it from --json"},
                    {"--crossover", "compare --algorithms by hand"}},
      .rest = cli::Rest::none};
}

Collective collective_of(const std::string& word) {
  const auto found = std::ranges::find(kCollectives, word, name_of);
  if (found == kCollectives.end()) {
    throw UsageError("--ops " + word +
                     ": expected words of all_reduce, reduce_scatter, all_gather");
  }
  return *found;
}

Dtype dtype_of(const std::string& word) {
  if (word != "f32" && word != "bf16") {
    throw UsageError("--dtype " + word + ": expected f32 or bf16");
  }
  return word == "f32" ? Dtype::f32 : Dtype::bf16;
}

std::int64_t size_of_word(const std::string& word, Dtype dtype) {
  constexpr std::int64_t kMost = std::int64_t{1} << 36;
  const auto bytes = quantity::bytes(word);
  if (!bytes || *bytes <= 0 || *bytes > kMost) {
    throw UsageError("--sizes " + word + ": expected bytes from 1 to 64GiB, as in 4KB or 25MB");
  }
  if (*bytes % size_of(dtype) != 0) {
    throw UsageError("--sizes " + word + ": is no whole number of " +
                     std::string(lockstep::name_of(dtype)) + " elements; give a multiple of " +
                     std::to_string(size_of(dtype)));
  }
  return *bytes;
}

Algorithm algorithm_of(const std::string& word) {
  const auto algorithm = algorithm_named(word);
  if (!algorithm) {
    throw UsageError("--algorithms " + word +
                     ": expected words of auto, direct, pairwise, ring, halving-doubling, tree, "
                     "coordinator");
  }
  if (*algorithm == Algorithm::native || *algorithm == Algorithm::hierarchical) {
    throw UsageError("--algorithms " + word +
                     ": needs several hosts, which are not built yet; use "
                     "auto or pairwise");
  }
  return *algorithm;
}

}  // namespace

std::string name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
  }
  return "?";
}

CollectivesOptions parse_collectives(std::span<const std::string> words, int ranks) {
  const cli::CommandLine line = cli::parse(syntax(), words);
  CollectivesOptions options;
  options.print = line.print;
  // One rank has nothing to move.
  options.ranks = static_cast<int>(cli::whole_value(line, "--ranks", {2, 1024}).value_or(ranks));
  options.dtype = dtype_of(line.value_of("--dtype").value_or("f32"));
  for (const std::string& word : list_value(line, "--algorithms", "auto")) {
    options.algorithms.push_back(algorithm_of(word));
  }
  for (const std::string& word : list_value(line, "--sizes", "4KB,1MB,25MB,100MB")) {
    options.sizes.push_back(size_of_word(word, options.dtype));
  }
  for (const std::string& word :
       list_value(line, "--ops", "all_reduce,reduce_scatter,all_gather")) {
    options.collectives.push_back(collective_of(word));
  }
  options.plain = line.value_of("--plain").has_value();
  options.json = line.value_of("--json").has_value();
  return options;
}

}  // namespace lockstep::bench
