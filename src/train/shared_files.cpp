#include "train/shared_files.h"

#include "comm/together.h"
#include "lockstep/error.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBlock = 512;  // the unit of st_blocks

std::string text_of(const std::vector<SharedFile>& files) {
  std::ostringstream text;
  for (const SharedFile& file : files) {
    text << file.device << ' ' << file.inode << ' ' << file.bytes << '\n';
  }
  return text.str();
}

}  // namespace

std::vector<SharedFile> shared_files() {
  std::error_code failed;
  fs::directory_iterator descriptors("/proc/self/fd", failed);
  if (failed) {
    throw SystemError("/proc/self/fd: " + failed.message() +
                      "; shared memory can't be measured without a mounted /proc");
  }
  std::vector<SharedFile> files;
  for (const fs::directory_entry& descriptor : descriptors) {
    const fs::path target = fs::read_symlink(descriptor.path(), failed);
    struct stat found {};
    if (target.string().starts_with("/memfd:lockstep") &&
        ::stat(descriptor.path().c_str(), &found) == 0) {
      files.push_back({found.st_dev, found.st_ino, found.st_blocks * kBlock});
    }
  }
  std::ranges::sort(files);
  const auto twice = std::ranges::unique(files);  // several descriptors of one
  files.erase(twice.begin(), twice.end());
  return files;
}

std::int64_t host_bytes(Group& group, const std::vector<SharedFile>& found) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> files;
  for (const std::string& text : comm::gather_texts(group, text_of(found), "shared files")) {
    std::istringstream words(text);
    for (SharedFile file; words >> file.device >> file.inode >> file.bytes;) {
      std::int64_t& bytes = files[{file.device, file.inode}];
      bytes = std::max(bytes, file.bytes);
    }
  }
  std::int64_t total = 0;
  for (const auto& [file, bytes] : files) {
    total += bytes;
  }
  return total;
}

}  // namespace lockstep::train
