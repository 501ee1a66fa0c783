#include "data/tokens.h"

#include "base/invariant.h"
#include "checkpoint/pending_file.h"
#include "lockstep/error.h"

#include <xxhash.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

namespace lockstep::data {
namespace {

using checkpoint::MappedFile;
using checkpoint::PendingFile;
using Bytes = std::span<const std::uint8_t>;

// The cache file: the ids, then this, so that it can be written while the text is read.
struct CacheTrailer {
  std::array<char, 8> magic = {'L', 'S', 'T', 'O', 'K', 'E', 'N', 'S'};
  std::uint32_t version = 2;
  std::uint32_t width_bytes = 1;  // of one id
  std::uint64_t tokenizer = 0;    // its identity
  std::int64_t count = 0;         // ids
  std::int64_t source_bytes = 0;
  std::int64_t source_modified_ns = 0;
  std::uint64_t source_sample = 0;
  std::uint64_t hash = 0;  // XXH3 of the ids' bytes
};
static_assert(sizeof(CacheTrailer) == 64);

struct Text {
  const TextSource& source;
  const Tokenizer& tokenizer;
  const EncodeOptions& encoding;

  int width() const { return width_bytes(tokenizer.vocabulary()); }
};

CacheTrailer trailer_for(const Text& text, std::int64_t ids_bytes, std::uint64_t hash) {
  CacheTrailer trailer;
  trailer.width_bytes = static_cast<std::uint32_t>(text.width());
  trailer.tokenizer = text.tokenizer.identity();
  trailer.count = ids_bytes / text.width();
  trailer.source_bytes = text.source.bytes;
  trailer.source_modified_ns = text.source.modified_ns;
  trailer.source_sample = text.source.sample;
  trailer.hash = hash;
  return trailer;
}

// The cache, when it is complete, undamaged, of this tokenizer and this state of the source.
std::optional<MappedFile> valid_cache(const Text& text, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return std::nullopt;
  }
  MappedFile file(path);
  if (file.bytes().size() < sizeof(CacheTrailer)) {
    return std::nullopt;
  }
  const Bytes ids = file.bytes().first(file.bytes().size() - sizeof(CacheTrailer));
  const CacheTrailer expected =
      trailer_for(text, static_cast<std::int64_t>(ids.size()), XXH3_64bits(ids.data(), ids.size()));
  const bool whole = ids.size() % static_cast<std::size_t>(text.width()) == 0;
  if (!whole || std::memcmp(ids.data() + ids.size(), &expected, sizeof expected) != 0) {
    return std::nullopt;
  }
  return file;
}

MappedFile map_source(const TextSource& source) {
  try {
    return MappedFile(source.path);
  } catch (const SystemError& error) {
    throw UsageError(std::string("--data ") + error.what());
  }
}

template <class Id>
Bytes narrowed(std::span<const TokenId> ids, std::vector<std::uint8_t>& buffer) {
  buffer.resize(ids.size() * sizeof(Id));
  std::uint8_t* to = buffer.data();
  for (const TokenId id : ids) {
    const Id narrow = static_cast<Id>(id);
    std::memcpy(to, &narrow, sizeof narrow);
    to += sizeof narrow;
  }
  return buffer;
}

Bytes narrowed(std::span<const TokenId> ids, int width, std::vector<std::uint8_t>& buffer) {
  switch (width) {
    case 1:
      return narrowed<std::uint8_t>(ids, buffer);
    case 2:
      return narrowed<std::uint16_t>(ids, buffer);
    default:
      return narrowed<std::uint32_t>(ids, buffer);
  }
}

// Gives `sink` the ids as bytes, in order. Throws UsageError when the source is not what it was
// found to be, before or after.
void encode_source(const Text& text, const std::function<void(Bytes)>& sink) {
  const MappedFile file = map_source(text.source);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  std::vector<std::uint8_t> buffer;
  encode_parallel(text.tokenizer, bytes, text.encoding,
                  [&](std::span<const TokenId> ids) { sink(narrowed(ids, text.width(), buffer)); });
  if (inspect(text.source.path) != text.source) {
    throw UsageError("--data " + text.source.path +
                     ": changed while it was read; start again once it is complete");
  }
}

void write_cache(const Text& text, const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  PendingFile file(path);
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  std::int64_t written = 0;
  encode_source(text, [&](Bytes ids) {
    XXH3_64bits_update(&hash, ids.data(), ids.size());
    file.write(ids.data(), static_cast<std::int64_t>(ids.size()));
    written += static_cast<std::int64_t>(ids.size());
  });
  const CacheTrailer trailer = trailer_for(text, written, XXH3_64bits_digest(&hash));
  file.write(&trailer, sizeof trailer);
  file.publish();
}

// What a file-system error says, without the paths that its what() repeats.
std::string reason_of(const std::exception& error) {
  const auto* system = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  return system == nullptr ? error.what()
                           : system->path1().string() + ": " + system->code().message();
}

// The cache, written first where needed; `problem` says why there can be none.
std::optional<MappedFile> make_cache(const Text& text, const std::string& path,
                                     std::string& problem) {
  try {
    if (auto cache = valid_cache(text, path)) {
      return cache;
    }
    write_cache(text, path);
    if (auto cache = valid_cache(text, path)) {
      return cache;
    }
    problem = path + ": is not as it was just written";
  } catch (const SystemError& error) {
    problem = reason_of(error);
  } catch (const std::filesystem::filesystem_error& error) {
    problem = reason_of(error);
  }
  return std::nullopt;
}

}  // namespace

Tokens::Tokens(Storage storage, std::size_t bytes, int width)
    : storage_(std::move(storage)), bytes_(bytes), width_(width) {}

TokenSpan Tokens::ids() const {
  const std::uint8_t* first = std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MappedFile>) {
          return held.bytes().data();
        } else {
          return held.data();
        }
      },
      storage_);
  const std::size_t count = bytes_ / static_cast<std::size_t>(width_);
  switch (width_) {
    case 1:
      return std::span(first, count);
    case 2:
      return std::span(reinterpret_cast<const std::uint16_t*>(first), count);
    default:
      return std::span(reinterpret_cast<const std::uint32_t*>(first), count);
  }
}

std::string cache_path(const TextSource& source, const std::string& cache_folder,
                       const Tokenizer& tokenizer) {
  std::array<char, 34> name{};
  std::snprintf(
      name.data(), name.size(), "%016llx.%016llx",
      static_cast<unsigned long long>(XXH3_64bits(source.path.data(), source.path.size())),
      static_cast<unsigned long long>(tokenizer.identity()));
  return cache_folder + "/" + name.data() + ".tokens";
}

Tokens Tokens::open(const TextSource& source, const std::string& cache_folder,
                    const Tokenizer& tokenizer, const EncodeOptions& encoding) {
  const Text text{source, tokenizer, encoding};
  std::string problem;
  if (auto cache = make_cache(text, cache_path(source, cache_folder, tokenizer), problem)) {
    const std::size_t bytes = cache->bytes().size() - sizeof(CacheTrailer);
    return Tokens(std::move(*cache), bytes, text.width());
  }
  std::vector<std::uint8_t> ids;
  encode_source(text, [&](Bytes more) { ids.insert(ids.end(), more.begin(), more.end()); });
  const std::size_t bytes = ids.size();
  Tokens tokens(std::move(ids), bytes, text.width());
  tokens.note_ = "no token cache (" + problem +
                 "); every rank keeps the tokens in its own memory; set LOCKSTEP_CACHE to a "
                 "writable folder";
  return tokens;
}

}  // namespace lockstep::data
