// Serves a page to this machine over HTTP/1.1, on the loopback address.
#pragma once

#include "cli/page_reply.h"

#include <atomic>
#include <memory>

namespace httplib {
class Server;
}

namespace lockstep::cli {

class PageServer {
 public:
  // Listens on 127.0.0.1; port 0: a free one. Throws UsageError when the port is taken.
  PageServer(int port, PageAnswers answers);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return port_; }
  // Answers until stop(), which another thread may call, before or after. A request whose Host is
  // not this server's, so that another site's page can't ask in a user's name, is refused with 403,
  // whatever is no GET with 405.
  void serve();
  void stop();

 private:
  PageAnswers answers_;
  std::unique_ptr<httplib::Server> server_;
  std::atomic<bool> serving_ = false;
  std::atomic<bool> stopping_ = false;
  int port_ = 0;
};

}  // namespace lockstep::cli
