// What `lockstep doctor` found, one line per question.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::cli {

// In the order of their gravity.
enum class Verdict : std::uint8_t { ok, warn, fail };

struct Finding {
  std::string name;  // "huge pages"
  Verdict verdict = Verdict::ok;
  std::string found;  // one line; says so where something can't be known
  std::string fix;    // what to do; empty: nothing
};

std::string_view name_of(Verdict verdict);

// ok without findings.
Verdict worst(std::span<const Finding> findings);

// A line each, its fix below it, and a last one that counts.
std::string findings_text(std::span<const Finding> findings);

// {"version", "verdict", "findings": [{"name", "verdict", "found", "fix"}]}.
nlohmann::ordered_json findings_json(std::span<const Finding> findings);

}  // namespace lockstep::cli
