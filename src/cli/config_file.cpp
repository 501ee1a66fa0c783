#include "cli/config_file.h"

#include "lockstep/error.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace lockstep::cli {
namespace {

constexpr std::string_view kBlank = " \t\r";
// A run's config.toml has 2 KB; what is larger is something else.
constexpr std::uintmax_t kMostBytes = 1 << 20;

struct Place {
  const std::string& where;
  int line;
};

[[noreturn]] void refuse(const Place& place, const std::string& text) {
  throw UsageError(place.where + " line " + std::to_string(place.line) + ": " + text);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto byte = [&](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xe0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

// Reads \uXXXX at the front of `text` and drops it.
void append_code_point(const Place& place, std::string& result, std::string_view& text) {
  std::uint32_t code = 0;
  const std::string_view digits = text.substr(0, 4);
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() != 4 || parsed.ptr != digits.data() + 4) {
    refuse(place, "\\u needs four hexadecimal digits");
  }
  append_utf8(result, code);
  text.remove_prefix(4);
}

// The string in double quotes at the front of `text`, which is left behind the closing quote.
std::string basic_string(const Place& place, std::string_view& text) {
  constexpr std::string_view kEscapes = "\"\\btnfr";
  constexpr std::string_view kMeanings = "\"\\\b\t\n\f\r";
  std::string result;
  text.remove_prefix(1);
  while (!text.empty() && text.front() != '"') {
    const char letter = text.front();
    text.remove_prefix(1);
    if (letter != '\\') {
      result.push_back(letter);
      continue;
    }
    const char escape = text.empty() ? '\0' : text.front();
    text.remove_prefix(text.empty() ? 0 : 1);
    const std::size_t known = kEscapes.find(escape);
    if (escape == 'u') {
      append_code_point(place, result, text);
    } else if (escape != '\0' && known != std::string_view::npos) {
      result.push_back(kMeanings[known]);
    } else {
      refuse(place,
             "unknown escape in a string; write \\\\ for a backslash, or use 'single quotes'");
    }
  }
  if (text.empty()) {
    refuse(place, "a string without its closing quote");
  }
  text.remove_prefix(1);
  return result;
}

std::string literal_string(const Place& place, std::string_view& text) {
  const std::size_t end = text.find('\'', 1);
  if (end == std::string_view::npos) {
    refuse(place, "a string without its closing quote");
  }
  std::string result(text.substr(1, end - 1));
  text.remove_prefix(end + 1);
  return result;
}

std::string bare_value(std::string_view& text) {
  std::string result(trimmed(text.substr(0, text.find('#'))));
  text = {};
  return result;
}

std::string read_value(const Place& place, std::string_view text) {
  std::string value;
  if (text.starts_with('"')) {
    value = basic_string(place, text);
  } else if (text.starts_with('\'')) {
    value = literal_string(place, text);
  } else {
    value = bare_value(text);
    if (value.empty()) {
      refuse(place, "a key without a value; write key = value");
    }
  }
  text = trimmed(text);
  if (!text.empty() && text.front() != '#') {
    refuse(place, "'" + std::string(text) + "' behind the value; write one key = value per line");
  }
  return value;
}

}  // namespace

std::vector<ConfigEntry> parse_config(const std::string& content, const std::string& where) {
  std::vector<ConfigEntry> entries;
  std::istringstream lines(content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const Place place{where, ++number};
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') {
      continue;
    }
    const std::size_t equals = text.find('=');
    if (text.front() == '[' || equals == std::string_view::npos) {
      refuse(place, "expected key = value, got '" + std::string(text) + "'");
    }
    entries.push_back({std::string(trimmed(text.substr(0, equals))),
                       read_value(place, trimmed(text.substr(equals + 1))), number});
  }
  return entries;
}

std::vector<ConfigEntry> read_config(const std::string& path, const std::string& what,
                                     const std::string& example) {
  const std::string where = what + " " + path;
  const auto refuse_file = [&](const char* why) {
    throw UsageError(where + ": " + why + "; name a file like " + example);
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {  // opening a pipe would wait for a writer
    refuse_file(error ? "can't be read" : "is no regular file");
  }
  std::ifstream file(path);
  if (!file) {
    refuse_file("can't be read");
  }
  if (std::filesystem::file_size(path, error) > kMostBytes) {
    refuse_file("is larger than 1 MiB");
  }
  std::string content;
  for (std::string line; std::getline(file, line);) {
    content.append(line).push_back('\n');
  }
  if (file.bad()) {
    refuse_file("can't be read");
  }
  return parse_config(content, where);
}

std::vector<ConfigEntry> read_config(const std::string& path) {
  return read_config(path, "--config", "a run's config.toml");
}

}  // namespace lockstep::cli
