// A rank that trains a small module and, when it is the victim, fails as asked at the place asked:
//   fault_rank WHERE HOW VICTIM
//     WHERE  rendezvous | forward | collective
//     HOW    kill | exception | exit | segv | bad_alloc
//     VICTIM a rank
#include "base/environment.h"
#include "launch/report.h"
#include "lockstep/parallel.h"

#include <torch/torch.h>

#include <csignal>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace {

struct Fault {
  std::string where;
  std::string how;
  std::int64_t victim;
};

void fail(const std::string& how) {
  std::puts("failing");  // starts the test's clock
  std::fflush(stdout);
  if (how == "kill") {
    ::kill(::getpid(), SIGKILL);
  } else if (how == "exception") {
    throw std::runtime_error("the program's own error");
  } else if (how == "exit") {
    ::_exit(3);
  } else if (how == "segv") {
    ::raise(SIGSEGV);
  } else if (how == "bad_alloc") {
    throw std::bad_alloc();
  }
}

struct NetImpl : torch::nn::Module {
  NetImpl() { linear = register_module("linear", torch::nn::Linear(64, 64)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear(x); }
  torch::nn::Linear linear{nullptr};
};
TORCH_MODULE(Net);

// An all_reduce whose owner fails in the middle of it.
void fail_inside_a_collective(lockstep::Group& group, const Fault& fault) {
  const auto memory = group.allocate_symmetric(1 << 20, "fault");
  lockstep::ReduceOptions options{.name = "fault"};
  if (group.rank() == fault.victim) {
    options.on_reduced = [&fault](std::size_t, std::int64_t, std::int64_t, const void*) {
      fail(fault.how);
    };
  }
  group.all_reduce(memory.span(0, 1 << 18, lockstep::Dtype::f32), options).wait();
}

void train(const Fault& fault) {
  const bool victim = lockstep::environment::integer("RANK").value_or(0) == fault.victim;
  if (victim && fault.where == "rendezvous") {
    fail(fault.how);
  }
  lockstep::Group world = lockstep::Group::from_environment();
  lockstep::Group other = *world.split(0, world.rank());
  Net net;
  lockstep::Parallel parallel(net, world, {.stage = lockstep::Stage::ddp});
  auto optimizer = parallel.adamw();
  for (int step = 0;; ++step) {
    const torch::Tensor output = net(torch::ones({4, 64}));
    if (step == 2 && fault.where == "forward" && victim) {
      fail(fault.how);
    }
    output.pow(2).mean().backward();
    optimizer.step();
    if (step == 2 && fault.where == "collective") {
      fail_inside_a_collective(other, fault);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "fault_rank: expected WHERE HOW VICTIM\n");
    return 2;
  }
  try {
    at::set_num_threads(1);
    train({argv[1], argv[2], std::stoll(argv[3])});
  } catch (const std::exception& error) {
    lockstep::launch::report_failure(lockstep::launch::kind_of(error), error.what());
  }
  return 1;
}
