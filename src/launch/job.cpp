#include "launch/job.h"

#include "base/environment.h"
#include "base/invariant.h"
#include "base/nonce.h"
#include "launch/file_descriptor.h"
#include "launch/mpirun.h"
#include "lockstep/error.h"
#include "machine/cores.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace lockstep::launch {
namespace {

// A fixed port may be taken, one that the system picks is not (29500 is everybody's default).
int free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), any, bytes) != 0 ||
      ::getsockname(socket.get(), any, &bytes) != 0) {
    throw SystemError(std::string("no free port on 127.0.0.1: ") + std::strerror(errno));
  }
  return ntohs(address.sin_port);
}

enum class Executable : std::uint8_t { yes, no, absent };

Executable look_at(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return Executable::absent;
  }
  return S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0 ? Executable::yes
                                                                      : Executable::no;
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    switch (look_at(name)) {
      case Executable::yes:
        return name;
      case Executable::no:
        throw UsageError("program '" + name + "' is not an executable file; check chmod +x");
      case Executable::absent:
        throw UsageError("program '" + name + "' not found; check the path");
    }
  }
  std::istringstream folders(environment::text("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (look_at(path) == Executable::yes) {
      return path;
    }
  }
  throw UsageError("program '" + name + "' not found in PATH; for one in this folder write ./" +
                   name);
}

namespace {

// The user's OMP_NUM_THREADS as it is: OpenMP takes one number, or one per nesting level.
std::optional<std::string> threads_of_environment() {
  const auto threads = environment::text("OMP_NUM_THREADS");
  if (threads && (threads->find_first_not_of("0123456789,") != std::string::npos ||
                  threads->front() < '1' || threads->front() > '9')) {
    throw UsageError("OMP_NUM_THREADS: expected a number of threads of at least 1, got '" +
                     *threads + "'; unset it to share out the cores");
  }
  return threads;
}

}  // namespace

namespace {

// What is decided for the ranks, whoever starts them.
std::vector<std::string> settings_of(const Job& job) {
  std::vector<std::string> settings{"OMP_NUM_THREADS=" + job.threads};
  if (!job.deadline.empty()) {
    settings.push_back("LOCKSTEP_DEADLINE=" + job.deadline);
  }
  if (!job.flight.empty()) {
    settings.push_back("LOCKSTEP_FLIGHT=" + job.flight);
  }
  if (!job.transport.empty()) {
    settings.push_back("LOCKSTEP_TRANSPORT=" + job.transport);
  }
  return settings;
}

std::string counted(const std::string& count, const std::string& noun) {
  return count + " " + noun + (count == "1" ? "" : "s");
}

// mpirun is the one process of the job, on all its cores; it starts the ranks.
void start_by_mpirun(Job& job, const std::vector<HostRanks>& hosts) {
  const Mpirun mpirun = find_mpirun();
  require_known(hosts);
  job.by_mpirun = counted(std::to_string(job.ranks), "rank") +
                  (hosts.empty() ? "" : " on " + counted(std::to_string(hosts.size()), "host")) +
                  " by " + mpirun.program;
  job.command = mpirun_command(mpirun.program, mpirun.family,
                               {.ranks = job.ranks,
                                .hosts = hosts,
                                .environment = settings_of(job),
                                .passed_on = hosts.empty() ? std::vector<std::string>{}
                                                           : passed_on(environment::inherited()),
                                .command = job.command});
  job.program = mpirun.program;
  job.ranks = 1;
  job.placement = place(machine::allowed_cores(), machine::cpu_quota(), 1);
}

// Other hosts are taken to be like this one: cores are shared out as on the fullest.
int ranks_on_one_host(const LaunchOptions& options) {
  return options.hosts.empty() ? options.ranks
                               : std::ranges::max(options.hosts, {}, &HostRanks::ranks).ranks;
}

}  // namespace

Job make_job(const LaunchOptions& options) {
  if (options.command.empty()) {
    throw UsageError("no program to launch; name it after --");
  }
  Job job;
  job.ranks = options.ranks;
  job.program = find_program(options.command.front());
  job.command = options.command;
  job.nonce = random_nonce();
  job.control = "lockstep-" + job.nonce + "-control";
  job.port = free_port();
  job.placement = place(machine::allowed_cores(), machine::cpu_quota(), ranks_on_one_host(options));
  job.threads =
      options.threads
          ? std::to_string(*options.threads)
          : threads_of_environment().value_or(std::to_string(job.placement.threads_per_rank));
  job.deadline = options.deadline_s ? std::to_string(*options.deadline_s) : "";
  job.flight = options.flight.empty() ? "" : std::filesystem::absolute(options.flight).string();
  job.output = options.output;
  job.transport = options.over_mpi ? "mpi" : "";
  if (options.over_mpi || !options.hosts.empty()) {
    LOCKSTEP_INVARIANT(options.hosts.empty() ? job.ranks : ranks_on(options.hosts), ==, job.ranks);
    start_by_mpirun(job, options.hosts);
  }
  return job;
}

std::vector<std::string> environment_of(const Job& job, int rank) {
  std::vector<std::string> own = settings_of(job);
  if (!job.by_mpirun.empty()) {
    return environment::inherited_with(own);
  }
  const auto set = [&own](const char* name, const std::string& value) {
    own.push_back(std::string(name) + "=" + value);
  };
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(job.ranks));
  set("LOCAL_RANK", std::to_string(rank));
  set("LOCAL_WORLD_SIZE", std::to_string(job.ranks));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(job.port));
  set("LOCKSTEP_JOB", job.nonce);
  set("LOCKSTEP_CONTROL", job.control);
  return environment::inherited_with(own);
}

std::string describe(const Job& job) {
  std::vector<int> cores;
  for (const auto& block : job.placement.cores_of_rank) {
    cores.insert(cores.end(), block.begin(), block.end());
  }
  std::ranges::sort(cores);
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (!job.by_mpirun.empty()) {
    return job.by_mpirun + ", " + counted(job.threads, "thread") + " each (OMP_NUM_THREADS)";
  }
  return counted(std::to_string(job.ranks), "rank") + " on " +
         counted(std::to_string(cores.size()), "core") + ", " + counted(job.threads, "thread") +
         " each (OMP_NUM_THREADS), address 127.0.0.1:" + std::to_string(job.port);
}

}  // namespace lockstep::launch
