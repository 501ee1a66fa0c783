#include "cli/finding.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace lockstep::cli {
namespace {

constexpr std::size_t kVerdictWidth = 6;
constexpr std::size_t kNameWidth = 16;

std::string padded(std::string_view text, std::size_t width) {
  return std::string(text) + std::string(text.size() < width ? width - text.size() : 1, ' ');
}

std::string counted(std::span<const Finding> findings, Verdict verdict, const std::string& one) {
  const auto count = std::ranges::count(findings, verdict, &Finding::verdict);
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::warn:
      return "warn";
    case Verdict::fail:
      return "fail";
  }
  return "?";
}

Verdict worst(std::span<const Finding> findings) {
  const auto found = std::ranges::max_element(findings, {}, &Finding::verdict);
  return found == findings.end() ? Verdict::ok : found->verdict;
}

std::string findings_text(std::span<const Finding> findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += padded(name_of(finding.verdict), kVerdictWidth) + padded(finding.name, kNameWidth) +
            finding.found + "\n";
    if (!finding.fix.empty()) {
      text += std::string(kVerdictWidth + kNameWidth, ' ') + "fix: " + finding.fix + "\n";
    }
  }
  return text + counted(findings, Verdict::fail, "failure") + ", " +
         counted(findings, Verdict::warn, "warning") + "\n";
}

nlohmann::ordered_json findings_json(std::span<const Finding> findings) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    array.push_back({{"name", finding.name},
                     {"verdict", name_of(finding.verdict)},
                     {"found", finding.found},
                     {"fix", finding.fix}});
  }
  return {{"version", LOCKSTEP_VERSION},
          {"verdict", name_of(worst(findings))},
          {"findings", std::move(array)}};
}

}  // namespace lockstep::cli
