// Ranks on several hosts: network namespaces with names of their own and TCP between them alone, on
// which `lockstep launch --hosts` starts ranks by a real Open MPI and a real MPICH. Needs
// root and iproute2.
#include "launch/captured.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockstep {
namespace {

const std::string kTools = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/hosts/";

// "10.77.0.1:2,10.77.0.2:2".
std::string host_list(int hosts, int per_host, const char* between = ",") {
  std::string list;
  for (int host = 1; host <= hosts; ++host) {
    list += (list.empty() ? "" : between) + ("10.77.0." + std::to_string(host)) + ":" +
            std::to_string(per_host);
  }
  return list;
}

class Hosts : public ::testing::TestWithParam<const char*> {
 protected:
  // Runs a line of shell on the first of `hosts` hosts, where $launch is `lockstep launch` and
  // $rank the program of hosts_rank.cpp.
  launch::Captured run(int hosts, const std::string& line,
                       std::vector<std::string> variables = {}) const {
    const std::string mpi = std::string(LOCKSTEP_SOURCE_DIR) + "/.deps/mpi/" + GetParam() + "/bin";
    if (!std::filesystem::exists(mpi + "/mpirun")) {
      throw std::runtime_error(mpi + "/mpirun is missing: run scripts/setup --tests");
    }
    variables.insert(
        variables.end(),
        {"PATH=" + mpi + ":" + std::getenv("PATH"), "TMPDIR=" + folder_.path(),
         std::string("launch=") + LOCKSTEP_PROGRAM + " launch",
         std::string("rank=") + LOCKSTEP_RANK_PROGRAM,
         // Into namespaces instead of over ssh, and by the one network that there is.
         "PRTE_MCA_plm_ssh_agent=" + kTools + "enter", "HYDRA_LAUNCHER=ssh",
         "HYDRA_LAUNCHER_EXEC=" + kTools + "enter", "HYDRA_IFACE=eth0", "UCX_TLS=tcp,self",
         "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_pml=ob1",
         "OMPI_MCA_btl=self,sm,tcp"});
    return launch::run_captured(
        {.command = {kTools + "with", std::to_string(hosts), "1gbit", "bash", "-c", line},
         .environment = variables,
         .patience = std::chrono::seconds(240)});
  }
  static std::string all_of(const launch::Captured& ended) { return ended.output + ended.error; }

  test::TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Libraries, Hosts, ::testing::Values("openmpi", "mpich"));

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

struct Layout {
  int hosts;
  int per_host;
};

TEST_P(Hosts, every_collective_by_every_algorithm_gives_the_oracles_bits) {
  for (const Layout& layout : {Layout{2, 2}, Layout{3, 1}, Layout{4, 1}}) {
    const int ranks = layout.hosts * layout.per_host;
    const auto ended =
        run(layout.hosts, "$launch --hosts " + host_list(layout.hosts, layout.per_host) +
                              " -- $rank collectives");
    EXPECT_EQ(ended.exit_code, 0) << all_of(ended);
    for (int rank = 0; rank < ranks; ++rank) {
      // The ranks of a host follow each other.
      const std::string line = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                               " on lockstep" + std::to_string(rank / layout.per_host + 1) + ", " +
                               std::to_string(layout.per_host) + " per host: ";
      EXPECT_EQ(count_of(ended.output, line), 1u) << line << "\n" << all_of(ended);
    }
  }
}

// Buffers that each of two hosts with two ranks puts on its cable for an all_reduce.
double buffers_sent(const std::string& output, const std::string& host) {
  const std::string before = "host " + host + " sent ";
  const auto at = output.find(before);
  return at == std::string::npos ? -1 : std::stod(output.substr(at + before.size()));
}

TEST_P(Hosts, hierarchical_sends_one_ranks_bytes_per_host_and_pairwise_more) {
  struct Sends {
    const char* algorithm;
    double buffers;
  };
  // pairwise: both ranks reduce their two blocks of the other host, and gather around a ring, of
  // which one rank's three blocks leave the host.
  for (const Sends& sends : {Sends{"hierarchical", 1}, Sends{"pairwise", 1.75}}) {
    const auto ended = run(2, "$launch --hosts " + host_list(2, 2) + " -- $rank bytes " +
                                  std::string(sends.algorithm));
    ASSERT_EQ(ended.exit_code, 0) << all_of(ended);
    for (const char* host : {"lockstep1", "lockstep2"}) {
      const double buffers = buffers_sent(ended.output, host);
      EXPECT_GE(buffers, sends.buffers) << sends.algorithm << "\n" << ended.output;
      // Headers, acknowledgements, control words, and what was on its way before.
      EXPECT_LE(buffers, sends.buffers * 1.15) << sends.algorithm << "\n" << ended.output;
    }
  }
}

TEST_P(Hosts, a_link_that_is_cut_is_timed_out_on_every_rank) {
  const std::string words = folder_.file("words");
  std::filesystem::create_directory(words);
  run(3, "$launch --hosts " + host_list(3, 1) + " -- $rank cut " + words + " " + kTools + "link 4");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string got = test::contents_of(words + "/" + std::to_string(rank));
    EXPECT_EQ(got.find("TimedOut: "), 0u) << "rank " << rank << ": " << got;
    EXPECT_NE(got.find("4000 ms"), std::string::npos) << "rank " << rank << ": " << got;
    // Who is behind the cut: rank 2, or for itself the others.
    const auto first_line = got.substr(0, got.find('\n'));
    EXPECT_NE(first_line.find("rank"), std::string::npos) << first_line;
  }
}

TEST_P(Hosts, exit_statuses_are_the_launchers) {
  const std::string with_hosts = "$launch --hosts " + host_list(2, 1) + " -- $rank exit";
  EXPECT_EQ(run(2, with_hosts).exit_code, 0);
  EXPECT_EQ(run(2, with_hosts + " 0=2 1=2").exit_code, 2);
  const auto failed = run(2, with_hosts + " 1=3");
  EXPECT_EQ(failed.exit_code, 1) << all_of(failed);
  EXPECT_NE(failed.error.find("lockstep: mpirun: exited with status 3"), std::string::npos)
      << all_of(failed);
}

TEST_P(Hosts, an_interrupt_ends_the_ranks_of_all_hosts) {
  const auto ended =
      run(2, "bash -c 'exec $launch --hosts " + host_list(2, 2) +
                 " -- $rank interrupt $$'; echo status $?; "
                 "for i in $(seq 100); do left=$(cat /proc/[0-9]*/comm 2>/dev/null | "
                 "grep -c lockstep_hosts); [ $left = 0 ] && break; sleep 0.1; done; "
                 "echo left $left");
  EXPECT_NE(ended.output.find("status 130\nleft 0\n"), std::string::npos) << all_of(ended);
}

TEST_P(Hosts, ranks_get_the_users_variables_and_their_own_hosts) {
  const auto ended = run(2,
                         "$launch --threads 3 --hosts " + host_list(2, 1) +
                             " -- $rank variables LOCKSTEP_CACHE OTHER OMP_NUM_THREADS TMPDIR",
                         {"LOCKSTEP_CACHE=/some/where", "OTHER=a b,c;d"});
  EXPECT_EQ(ended.exit_code, 0) << all_of(ended);
  for (const char* rank : {"0 on lockstep1", "1 on lockstep2"}) {
    const std::string host = std::string(rank).substr(5);
    const std::string line =
        std::string("rank ") + rank +
        " LOCKSTEP_CACHE=/some/where OTHER=a b,c;d OMP_NUM_THREADS=3 TMPDIR=" + folder_.path() +
        "/" + host + "\n";
    EXPECT_NE(ended.output.find(line), std::string::npos) << line << all_of(ended);
  }
}

TEST_P(Hosts, a_file_names_the_hosts_and_an_unknown_one_is_refused) {
  const std::string file = folder_.write("hosts", host_list(2, 1, "\n") + "  # two\n");
  const auto ended = run(2, "$launch --hosts " + file + " -- $rank variables");
  EXPECT_EQ(ended.exit_code, 0) << all_of(ended);
  EXPECT_EQ(count_of(ended.output, " on lockstep"), 2u) << all_of(ended);
  const auto refused = run(1, "$launch --hosts 10.77.0.1,no-such-host.invalid -- $rank variables");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.error.find("no address of 'no-such-host.invalid'"), std::string::npos)
      << refused.error;
}

}  // namespace
}  // namespace lockstep
