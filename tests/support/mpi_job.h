// A test that runs again as every rank of an MPI job: under the mpirun that set-up brought to
// .deps/mpi, this program with the same test alone.
//
//   const test::MpiJob job("openmpi", 3);
//   if (job.is_rank()) { …; return; }
//   const auto ended = job.run();
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

class MpiJob {
 public:
  struct Ended {
    int status = 0;      // mpirun's exit status, 128 + signal where one ended it
    std::string output;  // standard output and error of all ranks
  };

  // `library`: openmpi or mpich; `environment`: "NAME=value" for the ranks.
  MpiJob(std::string library, int ranks, std::vector<std::string> environment = {});

  bool is_rank() const;
  // From the test that is running. Ends the job after two minutes. Throws where set-up has not
  // brought the library.
  Ended run() const;

 private:
  std::string library_;
  int ranks_;
  std::vector<std::string> environment_;
};

// Prints a line in one piece: ranks share the output.
void say(const std::string& line);

}  // namespace lockstep::test
