#include "cli/plan_page.h"

#include "cli/hardware.h"
#include "cli/plan_json.h"
#include "cli/plan_options.h"
#include "lockstep/error.h"
#include "models/catalogue.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace lockstep::cli {
namespace {

using nlohmann::ordered_json;

// Parameters that are no option of `lockstep plan`.
constexpr const char* kTimeline = "timeline";
constexpr const char* kCurves = "curves";

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::ranges::find(words, word) != words.end();
}

// What is not a name may be a file, which is nothing to read because an address says so.
void require_name(const std::string& option, const std::string& value) {
  const bool model = option == "model";
  const auto names = model ? models::names() : hardware_names();
  if ((model || option == "hardware") && !is_one_of(value, names)) {
    std::string known;
    for (const std::string& name : names) {
      known += (known.empty() ? "" : ", ") + name;
    }
    throw UsageError("--" + option + ": the page takes names only (" + known + "), got '" + value +
                     "'; for a file use lockstep plan without --web");
  }
}

std::vector<std::string> words_of(const PageParameters& parameters) {
  static const std::vector<PlanOption> kOptions = question_options();
  std::vector<std::string> words;
  for (const auto& [name, value] : parameters) {
    if (name == kTimeline || name == kCurves) {
      continue;
    }
    const auto option = std::ranges::find(kOptions, name, &PlanOption::name);
    if (option == kOptions.end()) {
      throw UsageError("the page has no '" + name + "'");
    }
    require_name(name, value);
    words.push_back("--" + name + (option->is_switch ? "" : "=" + value));
  }
  return words;
}

// Letters, digits and what an address may hold as it is.
std::string percent_encoded(const std::string& text) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || std::string_view("-._~").find(letter) != std::string::npos) {
      encoded += letter;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

PageReply plan_reply(const PageParameters& parameters) {
  plan::PlanQuery query = parse_plan(words_of(parameters)).query;
  for (const auto& [name, value] : parameters) {
    query.curves = query.curves || name == kCurves;
    if (name == kTimeline) {
      query.timeline = stage_named(value);
      if (!query.timeline) {
        throw UsageError("timeline: expected a stage, got '" + value + "'");
      }
    }
  }
  return {200, kJsonType, plan_page_json(query, plan::answer(query)).dump()};
}

PageReply choices_reply() {
  ordered_json choices{{"models", models::names()}};
  choices["hardware"] = ordered_json::array();
  for (const std::string& name : hardware_names()) {
    choices["hardware"].push_back({{"name", name}, {"description", hardware_of(name).description}});
  }
  choices["stages"] = ordered_json::array();
  for (const Stage stage : plan::kPlannedStages) {
    choices["stages"].push_back(std::string(name_of(stage)));
  }
  return {200, kJsonType, choices.dump()};
}

}  // namespace

PageReply plan_page(const std::string& path, const PageParameters& parameters) {
  if (auto file = page_file("index.html", path)) {
    return *std::move(file);
  }
  if (path == "/api/choices") {
    return choices_reply();
  }
  if (path != "/api/plan") {
    return page_error(404, "nothing at " + path);
  }
  try {
    return plan_reply(parameters);
  } catch (const UsageError& error) {
    return page_error(400, error.what());
  }
}

std::string page_address(const std::vector<std::string>& words) {
  PageParameters given;
  for (const GivenOption& one : question_of(words)) {
    given.emplace_back(one.name, one.value);
  }
  if (given.empty()) {
    return "/";
  }
  static_cast<void>(words_of(given));  // names that the page takes
  std::string address;
  for (const auto& [name, value] : given) {
    address += (address.empty() ? "/?" : "&") + name + "=" + percent_encoded(value);
  }
  return address;
}

}  // namespace lockstep::cli
