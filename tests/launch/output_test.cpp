#include "launch/output.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace lockstep::launch {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
      read = FileDescriptor(ends[0]);
      write = FileDescriptor(ends[1]);
    }
  }
  FileDescriptor read;
  FileDescriptor write;
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  for (ssize_t bytes; (bytes = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  return text;
}

// What the user sees of the pieces that a rank writes one after the other.
std::string relayed(const std::vector<std::string>& pieces, std::string* last_line = nullptr) {
  Pipe user;
  Pipe rank;
  OutputSink sink(user.write.get());
  LineRelay relay(std::move(rank.read), sink, "[1] ");
  std::string seen;
  for (const std::string& piece : pieces) {
    EXPECT_EQ(::write(rank.write.get(), piece.data(), piece.size()),
              static_cast<ssize_t>(piece.size()));
    relay.read_once();
    seen += read_all(user.read.get());
  }
  rank.write.reset();
  while (relay.open()) {
    relay.read_once();
    seen += read_all(user.read.get());
  }
  while (sink.pending()) {
    sink.flush();
    seen += read_all(user.read.get());
  }
  if (last_line != nullptr) {
    *last_line = relay.last_line();
  }
  return seen;
}

TEST(LineRelay, prefixes_whole_lines_however_they_are_cut) {
  const std::string text = "one\ntwo\r\n\nbar 1\rbar 2\rthree\n";
  const std::string expected = "[1] one\n[1] two\r\n[1] \n[1] bar 1\r[1] bar 2\r[1] three\n";
  EXPECT_EQ(relayed({text}), expected);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(relayed({text.substr(0, cut), text.substr(cut)}), expected) << cut;
  }
}

TEST(LineRelay, flushes_what_lacks_its_end) {
  EXPECT_EQ(relayed({}), "");
  EXPECT_EQ(relayed({"no end"}), "[1] no end\n");
  EXPECT_EQ(relayed({"50 %\r"}), "[1] 50 %\r");
}

TEST(LineRelay, remembers_the_last_line_that_says_something) {
  std::string last;
  relayed({"first\nsecond\r\n \n\n"}, &last);
  EXPECT_EQ(last, "second");
}

TEST(LineRelay, cuts_endless_lines) {
  std::vector<std::string> pieces(40, std::string(32768, 'x'));
  const std::string seen = relayed(pieces);
  EXPECT_EQ(std::ranges::count(seen, 'x'), 40 * 32768);
  EXPECT_EQ(std::ranges::count(seen, '\n'), 2);
}

TEST(LineRelay, closes_when_the_reader_is_gone_so_that_the_rank_gets_sigpipe) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe user;
  Pipe rank;
  OutputSink sink(user.write.get());
  LineRelay relay(std::move(rank.read), sink, "");
  user.read.reset();
  ASSERT_EQ(::write(rank.write.get(), "a\n", 2), 2);
  relay.read_once();
  EXPECT_TRUE(sink.broken());
  EXPECT_FALSE(relay.open());
  EXPECT_EQ(::write(rank.write.get(), "b\n", 2), -1);
  EXPECT_EQ(errno, EPIPE);
}

class Sinks : public ::testing::TestWithParam<bool> {};

// A reader that takes nothing: bytes wait, nothing blocks, sources are asked to pause.
TEST_P(Sinks, never_block_and_lose_nothing) {
  std::array<int, 2> ends;
  if (GetParam()) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  } else {
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  }
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);  // blocking, as the user's streams are
  ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
  OutputSink sink(writer.get());
  std::string written;
  while (sink.has_room()) {
    written += std::string(10'000, static_cast<char>('a' + written.size() / 10'000 % 26));
    sink.append(written.substr(written.size() - 10'000));
  }
  EXPECT_TRUE(sink.pending());
  EXPECT_EQ(::fcntl(writer.get(), F_GETFL) & O_NONBLOCK, 0);  // the user's flags are untouched
  std::string seen;
  while (sink.pending()) {
    seen += read_all(reader.get());
    sink.flush();
  }
  seen += read_all(reader.get());
  EXPECT_EQ(seen, written);
  EXPECT_TRUE(sink.has_room());
}

INSTANTIATE_TEST_SUITE_P(OutputSink, Sinks, ::testing::Bool(), [](const auto& tested) {
  return std::string(tested.param ? "socket" : "pipe");
});

}  // namespace
}  // namespace lockstep::launch
