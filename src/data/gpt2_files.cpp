#include "data/gpt2_files.h"

#include "base/environment.h"
#include "checkpoint/mapped_file.h"
#include "data/vocabulary.h"
#include "lockstep/error.h"

#include <nlohmann/json.hpp>
#include <xxhash.h>

#include <filesystem>
#include <string_view>
#include <utility>

namespace lockstep::data {
namespace {

constexpr const char* kVocabularyFile = "/encoder.json";
constexpr const char* kMergesFile = "/vocab.bpe";

// One merge per line behind a line with a version.
std::vector<std::pair<std::string, std::string>> read_merges(const std::string& path,
                                                             std::string_view text) {
  std::vector<std::pair<std::string, std::string>> merges;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) {
      continue;
    }
    auto merge = merge_of(line);
    if (!merge) {
      throw UsageError("--tokenizer gpt2: " + path + " line " + std::to_string(number) +
                       ": expected two tokens and a space between, got '" + std::string(line) +
                       "'");
    }
    merges.push_back(std::move(*merge));
  }
  return merges;
}

}  // namespace

std::string gpt2_folder() {
  const auto own = environment::text("LOCKSTEP_GPT2");
  const std::string folder = own.value_or(LOCKSTEP_DEFAULT_GPT2);
  for (const char* file : {kVocabularyFile, kMergesFile}) {
    if (!std::filesystem::is_regular_file(folder + file)) {
      throw UsageError("--tokenizer gpt2: " + folder + file + " does not exist; " +
                       (own ? "let LOCKSTEP_GPT2 name the folder of GPT-2's encoder.json and "
                              "vocab.bpe"
                            : "run scripts/setup, or set LOCKSTEP_GPT2 to a folder that has it"));
    }
  }
  return folder;
}

BpeDefinition read_gpt2(const std::string& folder) {
  const std::string path = folder + kVocabularyFile;
  const checkpoint::MappedFile vocabulary(path);
  const checkpoint::MappedFile merges(folder + kMergesFile);
  const std::string_view merges_text(reinterpret_cast<const char*>(merges.bytes().data()),
                                     merges.bytes().size());
  BpeDefinition definition;
  definition.spec = "gpt2";
  definition.file = "gpt2: " + folder;
  definition.identity =
      XXH3_64bits_withSeed(merges.bytes().data(), merges.bytes().size(),
                           XXH3_64bits(vocabulary.bytes().data(), vocabulary.bytes().size()));
  definition.vocabulary = vocabulary_of(parse_json(path, vocabulary.bytes()), "gpt2: " + path);
  definition.merges = read_merges(folder + kMergesFile, merges_text);
  definition.words.inner = WordRule::gpt2;
  return definition;
}

}  // namespace lockstep::data
