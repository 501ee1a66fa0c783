// A folder of one's own that goes with its object.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::bench {

class TemporaryFolder {
 public:
  // Throws SystemError when none can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep::bench
