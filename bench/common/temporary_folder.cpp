#include "bench/common/temporary_folder.h"

#include "lockstep/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lockstep::bench {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw SystemError("folder " + name + " can't be made: " + std::strerror(errno) +
                      "; set TMPDIR to a folder that can be written");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lockstep::bench
