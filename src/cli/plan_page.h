// What the planner's page asks of the program, and what it gets.
#pragma once

#include "cli/page_reply.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// GET of a path:
//   /, /page.js, /page.css   the page, compiled in
//   /api/choices             {models[], hardware[{name, description}], stages[], algorithms[]}
//   /api/plan                plan_page_json(); parameters are options of `lockstep plan` without
//                            their dashes, curves=true and timeline=STAGE, which take longer. 400
//                            {error} where `lockstep plan` would refuse.
// Anything else is 404. Models and hardware go by name alone: the page reads no files.
PageReply plan_page(const std::string& path, const PageParameters& parameters);

// The address of the page that shows what `lockstep plan` with these words would: "/?params=8e9".
// Throws UsageError as `lockstep plan` would, or where the words need a file.
std::string page_address(const std::vector<std::string>& words);

}  // namespace lockstep::cli
