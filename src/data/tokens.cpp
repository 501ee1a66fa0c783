#include "data/tokens.h"

#include "checkpoint/pending_file.h"
#include "lockstep/error.h"

#include <xxhash.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

namespace lockstep::data {
namespace {

using checkpoint::MappedFile;
using checkpoint::PendingFile;

// The cache file: this header, then the tokens.
struct CacheHeader {
  std::array<char, 8> magic = {'L', 'S', 'T', 'O', 'K', 'E', 'N', 'S'};
  std::uint32_t version = 1;
  std::uint32_t width_bytes = 1;  // of one token
  std::array<char, 16> tokenizer = {'b', 'y', 't', 'e', 's'};
  std::int64_t count = 0;  // tokens
  std::int64_t source_bytes = 0;
  std::int64_t source_modified_ns = 0;
  std::uint64_t source_hash = 0;  // XXH3 of the source, which byte tokens equal
};
static_assert(sizeof(CacheHeader) == 64);

std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

CacheHeader header_for(const TextSource& source, std::span<const std::uint8_t> bytes) {
  CacheHeader header;
  header.count = static_cast<std::int64_t>(bytes.size());
  header.source_bytes = source.bytes;
  header.source_modified_ns = source.modified_ns;
  header.source_hash = hash_of(bytes);
  return header;
}

// The cache, when it is complete, undamaged and of this state of the source.
std::optional<MappedFile> valid_cache(const TextSource& source, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return std::nullopt;
  }
  MappedFile file(path);
  if (file.bytes().size() < sizeof(CacheHeader)) {
    return std::nullopt;
  }
  const CacheHeader expected = header_for(source, file.bytes().subspan(sizeof(CacheHeader)));
  if (std::memcmp(file.bytes().data(), &expected, sizeof expected) != 0 ||
      expected.count != source.bytes) {
    return std::nullopt;
  }
  return file;
}

void write_cache(const TextSource& source, std::span<const std::uint8_t> bytes,
                 const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  const CacheHeader header = header_for(source, bytes);
  PendingFile file(path);
  file.write(&header, sizeof header);
  file.write(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  file.publish();
}

// What a file-system error says, without the paths that its what() repeats.
std::string reason_of(const std::exception& error) {
  const auto* system = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  return system == nullptr ? error.what()
                           : system->path1().string() + ": " + system->code().message();
}

MappedFile map_source(const TextSource& source) {
  try {
    return MappedFile(source.path);
  } catch (const SystemError& error) {
    throw UsageError(std::string("--data ") + error.what());
  }
}

}  // namespace

Tokens::Tokens(MappedFile file, std::int64_t header_bytes)
    : file_(std::move(file)), ids_(file_.bytes().subspan(static_cast<std::size_t>(header_bytes))) {}

std::string cache_path(const TextSource& source, const std::string& cache_folder) {
  std::array<char, 17> name{};
  std::snprintf(
      name.data(), name.size(), "%016llx",
      static_cast<unsigned long long>(XXH3_64bits(source.path.data(), source.path.size())));
  return cache_folder + "/" + name.data() + ".bytes.tokens";
}

Tokens Tokens::open(const TextSource& source, const std::string& cache_folder) {
  const std::string path = cache_path(source, cache_folder);
  std::string problem;
  try {
    if (auto cache = valid_cache(source, path)) {
      return Tokens(std::move(*cache), sizeof(CacheHeader));
    }
    write_cache(source, map_source(source).bytes(), path);
    if (auto cache = valid_cache(source, path)) {
      return Tokens(std::move(*cache), sizeof(CacheHeader));
    }
    problem = source.path + ": changed while it was read";
  } catch (const SystemError& error) {
    problem = reason_of(error);
  } catch (const std::filesystem::filesystem_error& error) {
    problem = reason_of(error);
  }
  Tokens tokens(map_source(source), 0);
  tokens.note_ = "no token cache (" + problem + "); reading " + source.path +
                 " itself; set LOCKSTEP_CACHE to a writable folder";
  return tokens;
}

}  // namespace lockstep::data
