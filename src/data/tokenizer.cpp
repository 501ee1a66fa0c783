#include "data/tokenizer.h"

#include "data/bpe_tokenizer.h"
#include "data/byte_tokenizer.h"
#include "data/gpt2_files.h"
#include "data/tokenizer_json.h"
#include "lockstep/error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace lockstep::data {
namespace {

// The tokenizer.json that a spec names.
std::string file_of(const std::string& spec) {
  const bool folder = std::filesystem::is_directory(spec);
  const std::string path = folder ? spec + "/tokenizer.json" : spec;
  if (!std::filesystem::is_regular_file(path)) {
    throw UsageError("--tokenizer " + spec + ": " +
                     (folder ? "has no tokenizer.json" : "does not exist") +
                     "; use bytes, gpt2 or a Hugging Face tokenizer.json");
  }
  if (::access(path.c_str(), R_OK) != 0) {
    throw UsageError("--tokenizer " + path + ": can't be read (" + std::strerror(errno) +
                     "); check its permissions");
  }
  return path;
}

}  // namespace

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  encoder()->encode(text, ids);
  return ids;
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& spec) {
  if (spec == "bytes") {
    return std::make_shared<ByteTokenizer>();
  }
  return std::make_shared<BpeTokenizer>(spec == "gpt2" ? read_gpt2(gpt2_folder())
                                                       : read_tokenizer_json(file_of(spec)));
}

void check_tokenizer(const std::string& spec) {
  if (spec == "gpt2") {
    gpt2_folder();
  } else if (spec != "bytes") {
    file_of(spec);
  }
}

}  // namespace lockstep::data
