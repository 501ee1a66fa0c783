// Ports over a real Open MPI and a real MPICH: the test starts this program again under each one's
// mpirun, from .deps/mpi.
#include "comm/mpi_port.h"

#include "comm/mpi_library.h"
#include "comm/processes.h"
#include "lockstep/error.h"
#include "support/mpi_job.h"
#include "support/scoped_variable.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace lockstep::comm {
namespace {

class MpiPort : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Libraries, MpiPort, ::testing::Values("openmpi", "mpich"));

std::vector<std::byte> pattern(int sender, std::size_t bytes) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    values[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(sender));
  }
  return values;
}

void finish(Port::Transfer& transfer) {
  while (!transfer.done()) {
  }
}

// Every rank sends to every other, small and large, on two channels, the second one first.
void exchange_with_everybody(Port& port) {
  constexpr std::array<std::size_t, 4> kSizes{0, 1, 5000, 3'000'000};
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::unique_ptr<Port::Transfer>> transfers;
  for (const int channel : {1, 0}) {
    for (const std::size_t bytes : kSizes) {
      for (int peer = 0; peer < port.size(); ++peer) {
        if (peer != port.rank()) {
          transfers.push_back(
              port.send(peer, channel, buffers.emplace_back(pattern(port.rank(), bytes))));
        }
      }
    }
  }
  for (const int channel : {0, 1}) {
    for (const std::size_t bytes : kSizes) {
      for (int peer = 0; peer < port.size(); ++peer) {
        if (peer != port.rank()) {
          std::vector<std::byte> got(bytes);
          finish(*port.receive(peer, channel, got));
          if (got != pattern(peer, bytes)) {
            throw SystemError("wrong bytes from rank " + std::to_string(peer));
          }
        }
      }
    }
  }
  for (const auto& transfer : transfers) {
    finish(*transfer);
  }
}

TEST_P(MpiPort, ranks_exchange_messages_of_every_size) {
  const test::MpiJob job(GetParam(), 3);
  if (job.is_rank()) {
    const auto port = port_of_mpi();
    ASSERT_EQ(port->size(), 3);
    exchange_with_everybody(*port);
    test::say("rank " + std::to_string(port->rank()) + " of " + port->library());
    return;
  }
  const auto ended = job.run();
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string version =
      std::string(GetParam()) == "openmpi" ? "Open MPI 5.0.11" : "MPICH 5.0.2";
  for (int r = 0; r < 3; ++r) {
    const std::string line = "rank " + std::to_string(r) + " of " + version;
    EXPECT_NE(ended.output.find(line), std::string::npos) << ended.output;
  }
}

TEST_P(MpiPort, a_cancelled_receive_lets_the_job_end) {
  const test::MpiJob job(GetParam(), 2);
  if (job.is_rank()) {
    const auto port = port_of_mpi();
    std::byte never{};
    port->receive(1 - port->rank(), 0, std::span(&never, 1))->cancel();
    return;
  }
  const auto ended = job.run();
  EXPECT_EQ(ended.status, 0) << ended.output;
}

// MPICH ends a job that frees a communicator with an unmatched message.
TEST_P(MpiPort, messages_that_nobody_receives_let_the_job_end) {
  const test::MpiJob job(GetParam(), 3);
  if (job.is_rank()) {
    const auto port = port_of_mpi();
    const std::vector<std::byte> unheard = pattern(port->rank(), 1000);
    const int next = (port->rank() + 1) % port->size();
    const int previous = (port->rank() + 2) % port->size();
    for (int channel = 0; channel < port->rank() * 10; ++channel) {
      finish(*port->send(next, channel, unheard));
      finish(*port->send(next, channel, {}));
    }
    // Behind those, so that they are here when this one is.
    std::byte last{};
    std::byte heard{};
    const auto sent = port->send(next, 100, std::span(&last, 1));
    finish(*port->receive(previous, 100, std::span(&heard, 1)));
    finish(*sent);
    return;
  }
  const auto ended = job.run();
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(MpiLibrary, a_file_that_is_none_is_named) {
  const test::ScopedVariable file("LOCKSTEP_MPI", "/nowhere/libmpi.so");
  try {
    MpiLibrary();
    FAIL() << "expected an error";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("LOCKSTEP_MPI: can't load '/nowhere/libmpi.so'"),
              std::string::npos)
        << error.what();
  }
}

TEST(MpiLibrary, a_library_of_another_kind_is_refused) {
  const test::ScopedVariable file("LOCKSTEP_MPI", "libm.so.6");
  EXPECT_THROW(MpiLibrary(), SystemError);
}

TEST(MpiLibrary, without_any_the_error_says_what_to_install) {
  const test::ScopedVariable starter("OMPI_COMM_WORLD_SIZE", "2");
  const test::ScopedVariable path("PATH", "/nowhere");
  try {
    const std::string version = MpiLibrary().version();
    EXPECT_FALSE(version.empty());  // the system has one of its own
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("install Open MPI"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lockstep::comm
