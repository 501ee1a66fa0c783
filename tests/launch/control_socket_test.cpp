#include "launch/control_socket.h"

#include "lockstep/error.h"
#include "support/leaks.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <unistd.h>

namespace lockstep::launch {
namespace {

std::string unused_name() {
  static int count = 0;
  return "lockstep-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

// What anyone on the host can send.
void send_raw(const std::string& name, const std::string& bytes) {
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  ::sendto(socket.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

TEST(ControlSocket, reports_arrive_whole_and_in_order) {
  const std::string name = unused_name();
  ControlSocket socket(name);
  EXPECT_FALSE(socket.receive());
  const std::int64_t before = monotonic_ns();
  ASSERT_TRUE(send_report(name, 3, FailureKind::consequence, "rank 1 was lost"));
  ASSERT_TRUE(send_report(name, 1, FailureKind::cause, ""));
  const auto first = socket.receive();
  const auto second = socket.receive();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->rank, 3);
  EXPECT_EQ(first->kind, FailureKind::consequence);
  EXPECT_EQ(first->text, "rank 1 was lost");
  EXPECT_EQ(second->rank, 1);
  EXPECT_EQ(second->kind, FailureKind::cause);
  EXPECT_EQ(second->text, "");
  EXPECT_LE(before, first->time_ns);
  EXPECT_LE(first->time_ns, second->time_ns);
  EXPECT_LE(second->time_ns, monotonic_ns());
  EXPECT_FALSE(socket.receive());
}

TEST(ControlSocket, a_report_outlives_its_sender) {
  const std::string name = unused_name();
  ControlSocket socket(name);
  const pid_t child = ::fork();
  if (child == 0) {
    test::end_process(send_report(name, 2, FailureKind::cause, "the last words") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto report = socket.receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->text, "the last words");
}

TEST(ControlSocket, long_text_is_cut) {
  const std::string name = unused_name();
  ControlSocket socket(name);
  ASSERT_TRUE(
      send_report(name, 0, FailureKind::cause, std::string(7999, 'a') + std::string(9999, 'b')));
  const auto report = socket.receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->text, std::string(7999, 'a') + "b");
}

TEST(ControlSocket, malformed_datagrams_are_dropped) {
  const std::string name = unused_name();
  ControlSocket socket(name);
  send_raw(name, "");
  send_raw(name, "hello");
  send_raw(name, std::string(24, '\0'));
  send_raw(name, std::string(9000, 'x'));
  ASSERT_TRUE(send_report(name, 0, FailureKind::cause, "real"));
  const auto report = socket.receive();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->text, "real");
}

TEST(ControlSocket, datagrams_of_other_users_are_dropped) {
  const std::string name = unused_name();
  ControlSocket socket(name);
  const pid_t child = ::fork();
  if (child == 0) {
    // Only root can become somebody else; anyone else has no way to forge a sender at all.
    if (::getuid() == 0 && ::setuid(65534) != 0) {
      ::_exit(1);
    }
    ::_exit(send_report(name, 0, FailureKind::cause, "not yours") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(socket.receive().has_value(), ::getuid() != 0);
}

TEST(ControlSocket, nobody_listening_is_said_and_a_taken_name_is_an_error) {
  const std::string name = unused_name();
  EXPECT_FALSE(send_report(name, 0, FailureKind::cause, "hello"));
  const ControlSocket socket(name);
  EXPECT_THROW(ControlSocket{name}, SystemError);
}

}  // namespace
}  // namespace lockstep::launch
