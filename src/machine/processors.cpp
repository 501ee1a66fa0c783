#include "machine/processors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

namespace lockstep::machine {
namespace {

constexpr const char* kInformation = "/proc/cpuinfo";
constexpr const char* kProcessors = "/sys/devices/system/cpu";

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::string folder_of(int cpu) { return std::string(kProcessors) + "/cpu" + std::to_string(cpu); }

std::vector<int> online(const FileTree& files) {
  return numbers_of(files.first_line(std::string(kProcessors) + "/online").value_or(""));
}

// The kernel writes kilobytes: "32768K".
std::int64_t cache_bytes(const FileTree& files, const std::string& cache) {
  return number_of(files.first_line(cache + "/size").value_or("")).value_or(0) * 1024;
}

}  // namespace

std::string cpu_name(const FileTree& files) {
  return files.value_of(kInformation, "model name").value_or("unknown");
}

std::int64_t last_level_cache_bytes(const FileTree& files) {
  // Processors that share a cache name the same list of sharers, so that it is counted once.
  std::map<std::string, std::int64_t> bytes_of_sharers;
  for (const int cpu : online(files)) {
    std::string last;
    for (int index = 0;; ++index) {
      const std::string cache = folder_of(cpu) + "/cache/index" + std::to_string(index);
      if (!files.first_line(cache + "/size")) {
        break;
      }
      last = cache;
    }
    if (!last.empty()) {
      bytes_of_sharers[files.first_line(last + "/shared_cpu_list").value_or("")] =
          cache_bytes(files, last);
    }
  }
  std::int64_t total = 0;
  for (const auto& [sharers, bytes] : bytes_of_sharers) {
    total += bytes;
  }
  return total;
}

Topology topology(const FileTree& files) {
  const std::vector<int> cpus = online(files);
  Topology result{.online = static_cast<int>(cpus.size())};
  for (const int cpu : cpus) {
    const auto siblings = files.first_line(folder_of(cpu) + "/topology/thread_siblings_list");
    const auto threads = static_cast<int>(numbers_of(siblings.value_or("")).size());
    result.threads_per_core = std::max(result.threads_per_core, threads);
  }
  const auto nodes = files.first_line("/sys/devices/system/node/online");
  result.numa_nodes = std::max(1, static_cast<int>(numbers_of(nodes.value_or("")).size()));
  return result;
}

std::vector<std::string> cpu_features(const FileTree& files) {
  const auto flags = files.value_of(kInformation, "flags");  // x86; Arm calls them Features
  std::istringstream words(flags ? *flags : files.value_of(kInformation, "Features").value_or(""));
  std::vector<std::string> features;
  for (std::string word; words >> word;) {
    features.push_back(word);
  }
  return features;
}

bool multiplies_bf16(const std::vector<std::string>& features) {
  constexpr std::array<std::string_view, 3> kInstructions{"avx512_bf16", "amx_bf16", "bf16"};
  return std::ranges::find_first_of(features, kInstructions) != features.end();
}

std::vector<int> numbers_of(const std::string& list) {
  std::vector<int> numbers;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = number_of(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : number_of(std::string_view(part).substr(dash + 1));
    for (std::int64_t i = first.value_or(0); first && last && i <= *last; ++i) {
      numbers.push_back(static_cast<int>(i));
    }
  }
  return numbers;
}

}  // namespace lockstep::machine
