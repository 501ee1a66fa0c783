#include "launch/host_list.h"

#include "lockstep/error.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <netdb.h>
#include <regex>
#include <sstream>

namespace lockstep::launch {
namespace {

constexpr int kMostSlots = 1024;

struct Entry {
  std::string host;
  std::optional<int> slots;
};

[[noreturn]] void refuse(const std::string& what) { throw UsageError("--hosts: " + what); }

Entry entry_of(const std::string& word) {
  // A name must not look like an option to the programs that it is handed to.
  static const std::regex form("([A-Za-z0-9_][A-Za-z0-9_.-]*)((:|[ \t]+slots[ \t]*=[ \t]*)(.*))?");
  std::smatch parts;
  if (!std::regex_match(word, parts, form)) {
    refuse("expected hosts as in a:2,b:2, or the path of a file of them, got '" + word + "'");
  }
  if (!parts[2].matched) {
    return {parts[1], std::nullopt};
  }
  const std::string number = parts[4];
  int slots = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), slots);
  if (read.ec != std::errc{} || read.ptr != number.data() + number.size() || slots < 1 ||
      slots > kMostSlots) {
    refuse("slots of '" + parts[1].str() + "': expected a whole number from 1 to " +
           std::to_string(kMostSlots) + ", got '" + number + "'");
  }
  return {parts[1], slots};
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::vector<Entry> entries_of_file(const std::string& path) {
  std::ifstream file(path);
  std::vector<Entry> entries;
  for (std::string line; std::getline(file, line);) {
    if (const std::string word = trimmed(line.substr(0, line.find('#'))); !word.empty()) {
      entries.push_back(entry_of(word));
    }
  }
  if (!file.eof()) {
    refuse("can't read the file '" + path + "'; check the path, or name hosts as in a:2,b:2");
  }
  if (entries.empty()) {
    refuse("no host in the file '" + path + "'; write one on each line, as in a:2");
  }
  return entries;
}

std::vector<Entry> entries_of_list(const std::string& text) {
  std::vector<Entry> entries;
  std::istringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');) {
    entries.push_back(entry_of(word));
  }
  return entries;
}

void refuse_twice(std::vector<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::host);
  const auto twice = std::ranges::adjacent_find(entries, {}, &Entry::host);
  if (twice != entries.end()) {
    refuse("'" + twice->host + "' stands twice; name it once, with all its slots");
  }
}

// Each host's share where none has slots.
int share_of(const std::vector<Entry>& entries, std::optional<int> ranks) {
  const int hosts = static_cast<int>(entries.size());
  const int all = ranks.value_or(hosts);
  if (all % hosts != 0) {
    refuse("--ranks " + std::to_string(all) + " can't be shared out evenly to " +
           std::to_string(hosts) + " hosts; give a multiple of " + std::to_string(hosts) +
           ", or slots as in " + entries.front().host + ":2");
  }
  return all / hosts;
}

}  // namespace

int ranks_on(std::span<const HostRanks> hosts) {
  int ranks = 0;
  for (const HostRanks& host : hosts) {
    ranks += host.ranks;
  }
  return ranks;
}

std::vector<HostRanks> hosts_of(const std::string& text, std::optional<int> ranks) {
  const std::vector<Entry> entries =
      text.find('/') != std::string::npos ? entries_of_file(text) : entries_of_list(text);
  refuse_twice(entries);
  const auto has_none = [](const Entry& entry) { return !entry.slots; };
  const auto without = std::ranges::find_if(entries, has_none);
  const bool all_without = std::ranges::all_of(entries, has_none);
  if (without != entries.end() && !all_without) {
    refuse("'" + without->host + "' has no slots and others have; give all of them slots, or none");
  }
  std::vector<HostRanks> hosts;
  for (const Entry& entry : entries) {
    hosts.push_back({entry.host, all_without ? share_of(entries, ranks) : *entry.slots});
  }
  const int slots = ranks_on(hosts);
  if (ranks && *ranks != slots) {
    refuse(std::to_string(slots) + " slots, but --ranks " + std::to_string(*ranks) +
           "; give as many, or leave --ranks away");
  }
  return hosts;
}

void require_known(std::span<const HostRanks> hosts) {
  for (const HostRanks& one : hosts) {
    addrinfo* addresses = nullptr;
    const int failure = ::getaddrinfo(one.host.c_str(), nullptr, nullptr, &addresses);
    if (failure != 0) {
      refuse("no address of '" + one.host + "' (" + ::gai_strerror(failure) +
             "); check the name, or give an address that ssh can log in to");
    }
    ::freeaddrinfo(addresses);
  }
}

}  // namespace lockstep::launch
