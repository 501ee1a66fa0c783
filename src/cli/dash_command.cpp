#include "cli/commands.h"
#include "cli/dash_options.h"
#include "cli/sibling.h"

#include <cstdio>
#include <string>
#include <vector>

namespace lockstep::cli {

int run_dash(Words arguments) {
  const DashRequest request = parse_dash(arguments);
  if (!request.print.empty()) {
    std::fputs(request.print.c_str(), stdout);
    return 0;
  }
  std::vector<std::string> words{"dash"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  become_sibling("lockstep-page", words);
}

}  // namespace lockstep::cli
