#include "cli/hardware.h"

#include "base/quantity.h"
#include "cli/command_line.h"
#include "cli/config_file.h"
#include "cli/hardware_texts.h"
#include "lockstep/error.h"

#include <algorithm>
#include <functional>
#include <set>

namespace lockstep::cli {
namespace {

using plan::Hardware;

class Fields {
 public:
  Fields(std::vector<ConfigEntry> entries, const std::string& where)
      : entries_(std::move(entries)), where_(where) {}

  std::string text(const std::string& key) { return find(key).value; }

  // Above 0, and at most `most`.
  double number(const std::string& key, double most) {
    const ConfigEntry& entry = find(key);
    const auto value = quantity::decimal(entry.value);
    if (!value || !(*value > 0) || *value > most) {
      refuse(entry, "a number above 0 and at most " + quantity::text_of(most));
    }
    return *value;
  }

  std::int64_t whole(const std::string& key, std::int64_t most) {
    const ConfigEntry& entry = find(key);
    const auto value = quantity::whole(entry.value);
    if (!value || *value < 1 || *value > most) {
      refuse(entry, "a whole number from 1 to " + std::to_string(most));
    }
    return *value;
  }

  std::int64_t bytes(const std::string& key) {
    const ConfigEntry& entry = find(key);
    const auto value = quantity::bytes(entry.value);
    if (!value || *value < 1) {
      refuse(entry, "bytes, as in \"80GB\"");
    }
    return *value;
  }

  plan::HostMemory host_memory(const std::string& key) {
    const ConfigEntry& entry = find(key);
    if (entry.value != "shared" && entry.value != "separate") {
      refuse(entry, "\"shared\" or \"separate\"");
    }
    return entry.value == "shared" ? plan::HostMemory::shared : plan::HostMemory::separate;
  }

  // Every key that was given must have been asked for.
  void refuse_unknown() const {
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    for (const ConfigEntry& entry : entries_) {
      if (!asked_.contains(entry.key)) {
        throw UsageError(where_ + " line " + std::to_string(entry.line) + ": " + entry.key +
                         ": unknown key" + suggestion(entry.key, known));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const ConfigEntry& entry, const std::string& expected) const {
    throw UsageError(where_ + " line " + std::to_string(entry.line) + ": " + entry.key +
                     ": expected " + expected + ", got '" + entry.value + "'");
  }

  const ConfigEntry& find(const std::string& key) {
    asked_.insert(key);
    const auto found = std::ranges::find(entries_, key, &ConfigEntry::key);
    if (found == entries_.end()) {
      throw UsageError(where_ + ": " + key + ": is missing; hardware/h100.toml has every key");
    }
    return *found;
  }

  std::vector<ConfigEntry> entries_;
  const std::string& where_;
  std::set<std::string> asked_;
};

Hardware hardware_from(Fields fields) {
  constexpr double kMost = 1e9;
  Hardware hardware;
  hardware.name = fields.text("name");
  hardware.description = fields.text("description");
  hardware.source = fields.text("source");
  hardware.ranks_per_host = static_cast<int>(fields.whole("ranks_per_host", 1024));
  hardware.memory_bytes = fields.bytes("memory");
  hardware.host_memory = fields.host_memory("host_memory");
  hardware.f32_flops = fields.number("f32_tflops", kMost) * 1e12;
  hardware.bf16_flops = fields.number("bf16_tflops", kMost) * 1e12;
  hardware.reached = fields.number("reached", 1);
  hardware.memory_bytes_per_s = fields.number("memory_gb_per_s", kMost) * 1e9;
  hardware.inside = {fields.number("inside_latency_us", kMost) * 1e-6,
                     fields.number("inside_gb_per_s", kMost) * 1e9};
  hardware.between = {fields.number("between_latency_us", kMost) * 1e-6,
                      fields.number("between_gb_per_s", kMost) * 1e9};
  fields.refuse_unknown();
  return hardware;
}

}  // namespace

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const HardwareText& one : hardware_texts()) {
    names.emplace_back(one.name);
  }
  return names;
}

Hardware parse_hardware(const std::string& text, const std::string& where) {
  return hardware_from(Fields(parse_config(text, where), where));
}

Hardware hardware_of(const std::string& name_or_file) {
  for (const HardwareText& one : hardware_texts()) {
    if (one.name == name_or_file) {
      return parse_hardware(std::string(one.text), "--hardware " + name_or_file);
    }
  }
  if (!name_or_file.ends_with(".toml")) {
    std::string listed;
    for (const std::string& name : hardware_names()) {
      listed += (listed.empty() ? "" : ", ") + name;
    }
    throw UsageError("--hardware " + name_or_file + ": unknown" +
                     suggestion(name_or_file, hardware_names()) + "; use one of " + listed +
                     ", or a .toml file like those in hardware/");
  }
  const std::string where = "--hardware " + name_or_file;
  return hardware_from(
      Fields(read_config(name_or_file, "--hardware", "hardware/h100.toml"), where));
}

}  // namespace lockstep::cli
