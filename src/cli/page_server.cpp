#include "cli/page_server.h"

#include "lockstep/error.h"

#include <chrono>
#include <httplib.h>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr std::size_t kMostPayload = 4096;  // bytes; a question is an address
constexpr int kPatience_s = 2;

void refuse(httplib::Response& response, int status, const char* why) {
  response.status = status;
  response.set_content(why, "text/plain");
}

bool is_ours(const std::string& host, int port) {
  const std::string suffix = ":" + std::to_string(port);
  return host == kAddress + suffix || host == "localhost" + suffix;
}

PageParameters parameters_of(const httplib::Request& request) {
  return {request.params.begin(), request.params.end()};
}

// Nothing of the page comes from, or goes to, elsewhere. Styles: the charts set their own.
void add_policy(httplib::Response& response) {
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' "
                      "data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Cache-Control", "no-store");
}

}  // namespace

PageServer::PageServer(int port, PageAnswers answers)
    : answers_(std::move(answers)), server_(std::make_unique<httplib::Server>()) {
  // Not the library's SO_REUSEPORT, which would let two servers share a port.
  server_->set_socket_options([](socket_t) {});
  server_->set_payload_max_length(kMostPayload);
  server_->set_read_timeout(kPatience_s);
  server_->set_write_timeout(kPatience_s);
  server_->set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        add_policy(response);
        if (request.remote_addr != kAddress || !is_ours(request.get_header_value("Host"), port_)) {
          refuse(response, 403, "this page is for this machine, at its own address");
        } else if (request.method != "GET") {
          refuse(response, 405, "GET only");
        } else {
          const PageReply reply = answers_(request.path, parameters_of(request));
          response.status = reply.status;
          response.set_content(reply.body, reply.type.c_str());
        }
        return httplib::Server::HandlerResponse::Handled;
      });
  port_ = port == 0 ? server_->bind_to_any_port(kAddress)
                    : (server_->bind_to_port(kAddress, port) ? port : -1);
  if (port_ <= 0) {
    throw UsageError("--port " + std::to_string(port) + ": can't listen on " + kAddress + ":" +
                     std::to_string(port) + "; another program may have it: leave --port out");
  }
}

PageServer::~PageServer() = default;

void PageServer::serve() {
  serving_ = true;
  if (!stopping_) {
    server_->listen_after_bind();
  }
  serving_ = false;
}

// The library forgets a stop that comes before it listens.
void PageServer::stop() {
  stopping_ = true;
  while (serving_) {
    server_->stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockstep::cli
