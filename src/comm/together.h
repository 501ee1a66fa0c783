// What all ranks do or none: work that each does alone (files, checks), and what became of it.
#pragma once

#include "lockstep/group.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::comm {

// Collective: every rank's text, in rank order. `name` is shown in errors.
std::vector<std::string> gather_texts(Group& group, const std::string& mine, std::string_view name);

// Collective: runs `work`, which calls no collective, on every rank and returns the texts that it
// returned, in rank order. When it threw on some rank, throws on all of them what the lowest of
// those threw: UsageError for a UsageError, else Error, with "rank r: " before its text unless
// every rank said the same.
std::vector<std::string> do_together(Group& group, std::string_view name,
                                     const std::function<std::string()>& work);

}  // namespace lockstep::comm
