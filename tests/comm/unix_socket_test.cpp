#include "comm/unix_socket.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <fcntl.h>
#include <vector>

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;

// A connected pair under a name of its own.
struct Pair {
  std::string name = "lockstep-unix-socket-test-" + std::to_string(::getpid());
  FileDescriptor listener = std::move(*listen_abstract(name));
  FileDescriptor client = std::move(*connect_abstract(name));
  FileDescriptor server = std::move(*accept_waiting(listener));
};

TEST(UnixSocket, a_taken_name_and_an_absent_listener_are_not_errors) {
  EXPECT_FALSE(connect_abstract("lockstep-nobody-listens").has_value());
  const Pair pair;
  EXPECT_FALSE(listen_abstract(pair.name).has_value());
  EXPECT_FALSE(accept_waiting(pair.listener).has_value());
}

TEST(UnixSocket, a_name_is_free_again_when_its_listener_closed) {
  std::string name;
  {
    const Pair pair;
    name = pair.name;
  }
  EXPECT_TRUE(listen_abstract(name).has_value());
}

TEST(UnixSocket, bytes_and_a_descriptor_arrive_once) {
  const Pair pair;
  const FileDescriptor memory(::memfd_create("test", MFD_CLOEXEC));
  const std::vector<char> sent(5000, 'x');
  ASSERT_TRUE(send_bytes(pair.client, sent.data(), sent.size(), memory.get()));
  std::vector<char> received(sent.size());
  FileDescriptor carried;
  ASSERT_TRUE(readable(pair.server, milliseconds(1000)));
  ASSERT_TRUE(receive_bytes(pair.server, received.data(), received.size(), &carried));
  EXPECT_EQ(received, sent);
  ASSERT_TRUE(carried.valid());
  EXPECT_NE(carried.get(), memory.get());
  EXPECT_NE(::fcntl(carried.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_FALSE(readable(pair.server, milliseconds(0)));
}

TEST(UnixSocket, an_unwanted_descriptor_is_closed) {
  const Pair pair;
  const int next = ::dup(0);
  ::close(next);
  ASSERT_TRUE(send_bytes(pair.client, "x", 1, 0));
  char byte = 0;
  ASSERT_TRUE(receive_bytes(pair.server, &byte, 1));
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(after, next);
}

TEST(UnixSocket, a_hang_up_is_readable_and_ends_both_ways) {
  Pair pair;
  { const FileDescriptor gone = std::move(pair.client); }
  EXPECT_TRUE(readable(pair.server, milliseconds(0)));
  char byte = 0;
  EXPECT_FALSE(receive_bytes(pair.server, &byte, 1));
  EXPECT_FALSE(send_bytes(pair.server, &byte, 1));
}

TEST(UnixSocket, what_was_sent_before_a_hang_up_still_arrives) {
  Pair pair;
  ASSERT_TRUE(send_bytes(pair.server, "unread", 6));
  ASSERT_TRUE(send_bytes(pair.client, "last", 4));
  { const FileDescriptor gone = std::move(pair.client); }
  std::array<char, 4> received{};
  EXPECT_TRUE(receive_bytes(pair.server, received.data(), received.size()));
  EXPECT_EQ(std::string(received.data(), received.size()), "last");
}

TEST(UnixSocket, knows_the_process_at_the_other_end) {
  const Pair pair;
  EXPECT_EQ(peer_of(pair.server).process, ::getpid());
  EXPECT_EQ(peer_of(pair.server).user, ::geteuid());
}

}  // namespace
}  // namespace lockstep::comm
