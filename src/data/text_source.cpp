#include "data/text_source.h"

#include "base/environment.h"
#include "lockstep/error.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <vector>

namespace lockstep::data {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Of at most 64 pieces of 16 KiB, spread evenly and the last one at the end. Costs the same for a
// file of any size.
std::uint64_t sample_of(int descriptor, std::int64_t bytes) {
  constexpr std::int64_t kPiece = 1 << 14;
  constexpr std::int64_t kPieces = 64;
  const std::int64_t last = std::max<std::int64_t>(0, bytes - kPiece);
  const std::int64_t steps = std::min(kPieces - 1, (last + kPiece - 1) / kPiece);
  std::vector<char> piece(kPiece);
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i <= steps; ++i) {
    const off_t offset = steps == 0 ? 0 : last / steps * i + last % steps * i / steps;
    const ssize_t got = ::pread(descriptor, piece.data(), piece.size(), offset);
    hash = XXH3_64bits_withSeed(piece.data(), got > 0 ? static_cast<std::size_t>(got) : 0, hash);
  }
  return hash;
}

}  // namespace

std::string resolve(const std::string& data) {
  if (data != "text") {
    return data;
  }
  if (const auto own = environment::text("LOCKSTEP_TEXT")) {
    return *own;
  }
  if (!std::filesystem::exists(LOCKSTEP_DEFAULT_TEXT)) {
    throw UsageError("--data text: " LOCKSTEP_DEFAULT_TEXT
                     " does not exist; run scripts/setup, or set LOCKSTEP_TEXT to a text file");
  }
  return LOCKSTEP_DEFAULT_TEXT;
}

TextSource inspect(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw UsageError("--data " + path + ": can't be opened (" + std::strerror(errno) +
                     "); give a text file, or 'text' for the plays that scripts/setup prepares");
  }
  if (!S_ISREG(status.st_mode)) {
    throw UsageError("--data " + path +
                     (S_ISDIR(status.st_mode) ? ": is a folder" : ": is no file") +
                     "; expected one text file");
  }
  const Descriptor file(path);
  if (file.number() < 0) {
    throw UsageError("--data " + path + ": can't be read (" + std::strerror(errno) +
                     "); check its permissions");
  }
  if (status.st_size == 0) {
    throw UsageError("--data " + path + ": is empty; expected text to train on");
  }
  return {std::filesystem::absolute(path).string(), status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec,
          sample_of(file.number(), status.st_size)};
}

}  // namespace lockstep::data
