#include "cli/page_server.h"

#include "cli/plan_page.h"
#include "lockstep/error.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <thread>
#include <unistd.h>

namespace lockstep::cli {
namespace {

class PageServerTest : public ::testing::Test {
 protected:
  ~PageServerTest() override {
    server_.stop();
    thread_.join();
  }

  // What the server answers to these bytes, until it closes or 20 s are over.
  std::string answer_to(const std::string& request) const {
    const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{20, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
    EXPECT_EQ(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::string rest = request;
    while (!rest.empty()) {
      const ssize_t sent = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        break;  // it has heard enough
      }
      rest.erase(0, static_cast<std::size_t>(sent));
    }
    std::string answer;
    char piece[4096];
    for (ssize_t n = 0; (n = ::recv(connection, piece, sizeof piece, 0)) > 0;) {
      answer.append(piece, static_cast<std::size_t>(n));
    }
    ::close(connection);
    return answer;
  }

  std::string get(const std::string& path, std::string host = "", const char* verb = "GET") const {
    if (host.empty()) {
      host = "127.0.0.1:" + std::to_string(server_.port());
    }
    return answer_to(std::string(verb) + " " + path + " HTTP/1.1\r\nHost: " + host +
                     "\r\nConnection: close\r\n\r\n");
  }

  static int status_of(const std::string& answer) {
    return answer.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(answer.substr(9, 3)) : 0;
  }

  PageServer server_{0, plan_page};
  std::thread thread_{[this] { server_.serve(); }};
};

TEST_F(PageServerTest, the_page_and_its_answers_come_with_a_policy_that_keeps_them_here) {
  const std::string page = get("/");
  EXPECT_EQ(status_of(page), 200);
  EXPECT_NE(page.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("<title>"), std::string::npos);
  const std::string plan = get("/api/plan?params=8e9&ranks=8&device-memory=80GB");
  EXPECT_EQ(status_of(plan), 200) << plan;
  EXPECT_NE(plan.find("\"smallest_stage\":\"zero1\""), std::string::npos);
  EXPECT_EQ(status_of(get("/api/plan?params=nothing")), 400);
}

TEST_F(PageServerTest, foreign_hosts_are_refused) {
  const std::string port = std::to_string(server_.port());
  EXPECT_EQ(status_of(get("/", "localhost:" + port)), 200);
  for (const std::string& host :
       {std::string("example.com"), "example.com:" + port, std::string("127.0.0.1"),
        "127.0.0.1.example.com:" + port, "127.0.0.1:" + port + "0"}) {
    EXPECT_EQ(status_of(get("/", host)), 403) << host;
  }
  EXPECT_EQ(status_of(answer_to("GET / HTTP/1.0\r\n\r\n")), 403);
}

TEST_F(PageServerTest, only_get_is_answered) {
  for (const char* verb : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    EXPECT_EQ(status_of(get("/", "", verb)), 405) << verb;
  }
}

TEST_F(PageServerTest, it_survives_garbage_and_still_answers) {
  const std::string host = "Host: 127.0.0.1:" + std::to_string(server_.port()) + "\r\n";
  for (const std::string& garbage :
       {std::string("\0\xff\xfe garbage", 12), std::string("GET\r\n\r\n"), std::string("\r\n\r\n"),
        "GET " + std::string(100'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n",
        "GET / HTTP/1.1\r\n" + host + "Content-Length: 99999999999\r\n\r\n",
        "GET / HTTP/1.1\r\n" + host + "X: " + std::string(200'000, 'x') + "\r\n\r\n",
        "GET /api/plan?" + std::string(3000, '&') + "%zz=%&=%00 HTTP/1.1\r\n" + host + "\r\n"}) {
    const std::string answer = answer_to(garbage);
    EXPECT_TRUE(answer.empty() || answer.rfind("HTTP/1.1 ", 0) == 0) << answer;
  }
  EXPECT_EQ(status_of(get("/")), 200);
  EXPECT_EQ(status_of(get("/%2e%2e/%2e%2e/etc/passwd")), 404);
}

TEST_F(PageServerTest, a_port_that_is_taken_is_an_error_with_the_port) {
  try {
    PageServer second(server_.port(), plan_page);
    FAIL() << "expected a refusal";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--port " + std::to_string(server_.port())),
              std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::cli
