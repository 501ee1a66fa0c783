// Files of events as PyPI's tensorboard reads them.
#include "train/event_file.h"

#include "launch/started_program.h"
#include "lockstep/error.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::train {
namespace {

using nlohmann::json;
using test::StartedProgram;
using test::TemporaryFolder;

// {tag: [[step, value as text], …]} of a folder, by tensorboard's own accumulator and, for single
// events, its file loader.
json read_with_tensorboard(const std::string& folder) {
  StartedProgram python({LOCKSTEP_TORCH_PYTHON, "-B", LOCKSTEP_READ_EVENTS, folder});
  EXPECT_EQ(python.wait(std::chrono::seconds(60)), 0) << python.output() << python.error();
  return json::parse(python.output(), nullptr, false);
}

TEST(EventFile, TensorboardReadsEveryValue) {
  const TemporaryFolder folder;
  const double third = 1.0 / 3.0;
  {
    EventFile events(folder.path(), 0);
    for (std::int64_t step = 0; step < 200; ++step) {
      const std::vector<Scalar> scalars{{"train/loss", third * static_cast<double>(step)},
                                        {"train/lr", 3e-4}};
      events.add(step, scalars);
    }
    events.add(std::int64_t{1} << 40, std::vector<Scalar>{{"eval/loss", -2.5}});
    EXPECT_NE(events.path().find("/events.out.tfevents."), std::string::npos);
  }
  const json read = read_with_tensorboard(folder.path());
  ASSERT_EQ(read["train/loss"].size(), 200u);
  ASSERT_EQ(read["train/lr"].size(), 200u);
  for (std::int64_t step = 0; step < 200; ++step) {
    const json& point = read["train/loss"][static_cast<std::size_t>(step)];
    EXPECT_EQ(point[0], step);
    EXPECT_EQ(point[1].get<float>(), static_cast<float>(third * static_cast<double>(step)));
  }
  EXPECT_EQ(read["train/lr"][7][1].get<float>(), 3e-4f);
  EXPECT_EQ(read["eval/loss"], json::parse("[[1099511627776, -2.5]]"));
  EXPECT_EQ(read.size(), 3u);
}

TEST(EventFile, KeepsWhatIsNotFinite) {
  const TemporaryFolder folder;
  EventFile events(folder.path(), 0);
  events.add(0, std::vector<Scalar>{{"train/loss", std::numeric_limits<double>::quiet_NaN()},
                                    {"train/grad_norm", std::numeric_limits<double>::infinity()}});
  const json read = read_with_tensorboard(folder.path());
  EXPECT_EQ(read["train/loss"], json::parse(R"([[0, "nan"]])"));
  EXPECT_EQ(read["train/grad_norm"], json::parse(R"([[0, "inf"]])"));
}

TEST(EventFile, AKilledProcessLeavesAllThatWasAdded) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    EventFile events(folder.path(), 0);
    for (std::int64_t step = 0; step < 50; ++step) {
      events.add(step, std::vector<Scalar>{{"train/loss", 1.0}});
    }
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(read_with_tensorboard(folder.path())["train/loss"].size(), 50u);
}

TEST(EventFile, ASecondRunReplacesTheStepsFromItsFirst) {
  const TemporaryFolder folder;
  {
    EventFile events(folder.path(), 0);
    for (std::int64_t step = 0; step < 10; ++step) {
      events.add(step, std::vector<Scalar>{{"train/loss", 1.0}});
    }
  }
  EventFile events(folder.path(), 6);
  for (std::int64_t step = 6; step < 8; ++step) {
    events.add(step, std::vector<Scalar>{{"train/loss", 2.0}});
  }
  EXPECT_EQ(folder.entries(), 2);
  const json read = read_with_tensorboard(folder.path());
  EXPECT_EQ(read["train/loss"],
            json::parse("[[0,1.0],[1,1.0],[2,1.0],[3,1.0],[4,1.0],[5,1.0],[6,2.0],[7,2.0]]"));
}

TEST(EventFile, SaysWhatItCannotWrite) {
  const std::string error =
      test::error_of<SystemError>([] { EventFile events("/no/such/folder", 0); });
  EXPECT_NE(error.find("/no/such/folder/events.out.tfevents."), std::string::npos) << error;
  EXPECT_NE(error.find("No such file"), std::string::npos) << error;
}

}  // namespace
}  // namespace lockstep::train
