// What the page of `lockstep dash` asks of the program, and what it gets.
#pragma once

#include "cli/page_reply.h"

#include <string>
#include <vector>

namespace lockstep::cli {

// The runs of these folders: a run's own, or those inside, by name. What appears there later is
// found by the next call.
std::vector<std::string> runs_in(const std::vector<std::string>& folders);

// GET of a path:
//   /, /page.js, /page.css              the page, compiled in
//   /api/runs                           {runs[{run, state, options{}, ranks[{name, verdict, found,
//                                       fix}]}]}, as RunView
//   /api/metrics?run=RUN[&from=BYTES]   {from, next, more, lines[]}, as MetricsPiece
// Anything else, and a run that is not among them, is 404.
PageReply dash_page(const std::vector<std::string>& folders, const std::string& path,
                    const PageParameters& parameters);

}  // namespace lockstep::cli
