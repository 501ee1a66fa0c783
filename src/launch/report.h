// How a rank tells its launcher why it failed, so that the job's closing lines name the first cause
// and not whoever noticed it first. Called by the rank, at most once, just before it exits.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace lockstep::launch {

enum class FailureKind : std::uint8_t {
  cause,        // this rank failed by itself
  consequence,  // another rank's failure ended this one
};

// What an exception stands for: errors of a group (a lost peer, ranks that disagree, a deadline)
// are consequences, everything else is a cause.
FailureKind kind_of(const std::exception& failure);

// An exception's text in one line, without the stack frames that LibTorch appends to it. What a
// group's failure says of each rank stays a line of its own, indented by two spaces.
std::string one_line(std::string_view text);

// Sends one line of text to the launcher. Returns false when there is none or it can't be reached;
// the program then prints the text itself. Never throws, waits at most a second.
bool report_failure(FailureKind kind, std::string_view text) noexcept;

}  // namespace lockstep::launch
