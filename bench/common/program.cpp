#include "bench/common/program.h"

#include "launch/report.h"
#include "lockstep/error.h"

#include <cstdio>

namespace lockstep::bench {
namespace {

void tell(const std::string& name, const std::exception& failure) {
  if (!launch::report_failure(launch::kind_of(failure), failure.what())) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), failure.what());
  }
}

}  // namespace

int run_program(const std::string& name, int argc, char** argv,
                const std::function<int(std::span<const std::string>)>& body) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  try {
    return body(words);
  } catch (const UsageError& failure) {
    tell(name, failure);
    return 2;
  } catch (const std::exception& failure) {
    tell(name, failure);
    return 1;
  }
}

std::vector<std::string> list_value(const cli::CommandLine& line, const std::string& name,
                                    const std::string& fallback) {
  const std::string text = line.value_of(name).value_or(fallback);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    if (words.back().empty()) {
      throw UsageError(name + ": expected words between commas, got '" + text + "'");
    }
    begin = end + 1;
  }
  return words;
}

}  // namespace lockstep::bench
