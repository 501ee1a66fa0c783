#include "checkpoint/publication.h"

#include "checkpoint/small_state.h"
#include "lockstep/error.h"
#include "support/file_size_limit.h"
#include "support/leaks.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace lockstep::checkpoint {
namespace {

using test::error_of;
using test::TemporaryFolder;

// Does what the disk does until its time has come; then the process dies, before an effect or in
// the middle of one.
class DyingDisk final : public Disk {
 public:
  explicit DyingDisk(int moments) : left_(moments) {}

  void make_folder(const std::string& path) override {
    moment();
    Disk::make_folder(path);
  }
  void write_file(const std::string& path, std::span<const ByteSpan> pieces) override {
    moment();
    if (left_ == 0) {
      Disk::write_file(path, pieces.first(pieces.size() / 2));
    }
    moment();
    Disk::write_file(path, pieces);
  }
  void flush_folder(const std::string& path) override {
    moment();
    Disk::flush_folder(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    moment();
    Disk::rename(from, to);
  }
  void exchange(const std::string& one, const std::string& other) override {
    moment();
    Disk::exchange(one, other);
  }
  void remove_folder(const std::string& path) override {
    moment();
    if (left_ == 0) {
      std::filesystem::remove(*std::filesystem::directory_iterator(path));
    }
    moment();
    Disk::remove_folder(path);
  }

 private:
  void moment() {
    if (left_-- == 0) {
      ::kill(::getpid(), SIGKILL);
    }
  }
  int left_;
};

// Does what the disk does and tells it, with paths as seen from `root`.
class TellingDisk final : public Disk {
 public:
  explicit TellingDisk(std::string root) : root_(std::move(root)) {}
  std::vector<std::string> take() { return std::exchange(told_, {}); }

  void make_folder(const std::string& path) override {
    Disk::make_folder(path);
    tell("make", path);
  }
  void write_file(const std::string& path, std::span<const ByteSpan> pieces) override {
    Disk::write_file(path, pieces);
    tell("write", path);
  }
  void flush_folder(const std::string& path) override {
    Disk::flush_folder(path);
    tell("flush", path);
  }
  void rename(const std::string& from, const std::string& to) override {
    Disk::rename(from, to);
    tell("rename", from);
  }
  void exchange(const std::string& one, const std::string& other) override {
    Disk::exchange(one, other);
    tell("exchange", one);
  }
  void remove_folder(const std::string& path) override {
    Disk::remove_folder(path);
    tell("remove", path);
  }

 private:
  void tell(const std::string& what, const std::string& path) {
    told_.push_back(what + " " + std::filesystem::path(path).lexically_relative(root_).string());
  }
  std::string root_;
  std::vector<std::string> told_;
};

// Runs `body` in a process of its own and returns how it ended, as waitpid tells.
template <class Body>
int in_a_process(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    test::end_process(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// Whatever a dead writer left: the newest step is whole, saving goes on, and nothing else stays.
void expect_to_go_on(const TemporaryFolder& folder, std::int64_t next) {
  const std::vector<std::int64_t> steps = saved_steps(folder.path());
  ASSERT_FALSE(steps.empty());
  for (const std::int64_t step : steps) {
    SmallState(step).expect_saved(folder.file(step_folder_name(step)));
  }
  Disk disk;
  SmallState(next).expect_saved(SmallState(next).save(disk, folder.path(), 1));
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{next}));
  EXPECT_TRUE(unfinished_steps(folder.path()).empty());
}

// Step 1 is saved; dies while saving `step` and dropping what is older, at one moment after
// another.
void die_at_every_moment(std::int64_t step, int at_least) {
  int moments = 0;
  for (bool died = true; died; ++moments) {
    const TemporaryFolder folder;
    Disk disk;
    SmallState(1).save(disk, folder.path());
    const int status = in_a_process([&] {
      DyingDisk dying(moments);
      SmallState(step).save(dying, folder.path(), 1);
    });
    died = WIFSIGNALED(status);
    EXPECT_TRUE(died ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    expect_to_go_on(folder, step);
  }
  EXPECT_GT(moments, at_least) << "every effect was a moment";
}

TEST(Publication, K44_death_at_any_moment_of_saving_leaves_whole_steps_only) {
  die_at_every_moment(2, 12);
}

TEST(Publication, K44_death_at_any_moment_of_replacing_a_step_leaves_one_of_both) {
  die_at_every_moment(1, 12);
}

TEST(Publication, K44_kill_9_at_50_random_moments) {
  const TemporaryFolder folder;
  std::minstd_rand random(44);
  constexpr std::int64_t kCount = 20'000;
  Disk disk;
  SmallState(0, kCount).save(disk, folder.path());
  for (int round = 0; round < 50; ++round) {
    const std::int64_t newest = saved_steps(folder.path()).back();
    const pid_t child = ::fork();
    if (child == 0) {
      Disk own;
      for (std::int64_t step = newest + 1;; ++step) {
        SmallState(step, kCount).save(own, folder.path(), 2);
      }
    }
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::vector<std::int64_t> steps = saved_steps(folder.path());
    ASSERT_GE(steps.back(), newest);
    for (const std::int64_t step : steps) {
      SmallState(step, kCount).expect_saved(folder.file(step_folder_name(step)));
    }
  }
  const std::int64_t newest = saved_steps(folder.path()).back();
  EXPECT_GT(newest, 0) << "some saves came to their end";
  SmallState(newest, kCount).save(disk, folder.path(), 1);
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{newest}));
  EXPECT_TRUE(unfinished_steps(folder.path()).empty());
}

// After a loss of power too: a name never stands for what the disk may not have yet.
TEST(Publication, K44_a_step_is_on_the_disk_before_its_name_is) {
  const TemporaryFolder folder;
  TellingDisk disk(folder.path());
  const std::vector<std::string> written{
      "make .step-00000001", "write .step-00000001/half-0.safetensors",
      "write .step-00000001/half-50.safetensors", "write .step-00000001/manifest.json",
      "flush .step-00000001"};
  const auto expect_then = [&](std::vector<std::string> then) {
    std::vector<std::string> expected = written;
    expected.insert(expected.end(), then.begin(), then.end());
    EXPECT_EQ(disk.take(), expected);
  };
  SmallState(1).save(disk, folder.path());
  expect_then({"rename .step-00000001", "flush ."});
  SmallState(1).save(disk, folder.path());
  expect_then({"exchange .step-00000001", "flush .", "remove .step-00000001"});
}

TEST(Publication, AFullDiskLeavesThePreviousStepAndNothingElse) {
  const TemporaryFolder folder;
  Disk disk;
  const std::string first = SmallState(1).save(disk, folder.path());
  std::string text;
  {
    const test::FileSizeLimit limit(500);
    text = error_of<SystemError>([&] { SmallState(2).save(disk, folder.path()); });
  }
  EXPECT_NE(text.find("half-0.safetensors: writing after 500 bytes failed: File too large"),
            std::string::npos)
      << text;
  SmallState(1).expect_saved(first);
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(unfinished_steps(folder.path()).empty());
}

TEST(Publication, KeepsTheNewestAndRemovesOthersAfterPublishing) {
  const TemporaryFolder folder;
  Disk disk;
  for (std::int64_t step = 1; step <= 4; ++step) {
    SmallState(step).save(disk, folder.path(), 3);
  }
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{2, 3, 4}));
  SmallState(5).save(disk, folder.path());
  EXPECT_EQ(saved_steps(folder.path()), (std::vector<std::int64_t>{2, 3, 4, 5}));
}

TEST(Publication, OneWriterAtATime) {
  const TemporaryFolder folder;
  Disk disk;
  const Publication writing(disk, folder.path(), 1);
  EXPECT_NE(error_of<Error>([&] {
              SmallState(2).save(disk, folder.path());
            }).find("another process is saving into it"),
            std::string::npos);
  EXPECT_EQ(unfinished_steps(folder.path()).size(), 1u) << "the first writer's is still there";
}

TEST(Publication, TheSameStateGivesTheSameBytes) {
  const TemporaryFolder one;
  const TemporaryFolder other;
  Disk disk;
  const std::string first = SmallState(7).save(disk, one.file("new/folder"));
  const std::string second = SmallState(7).save(disk, other.path());
  for (const char* const name : {"manifest.json", "half-0.safetensors", "half-50.safetensors"}) {
    EXPECT_EQ(test::contents_of(first + "/" + name), test::contents_of(second + "/" + name));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
