// What a page asks of the program and what it gets: a path and parameters in, bytes out. No
// sockets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::cli {

struct PageReply {
  int status = 200;
  std::string type;  // of the content
  std::string body;
};

// Parameters of an address, decoded, in their order.
using PageParameters = std::vector<std::pair<std::string, std::string>>;

// Answers a GET. Called by several threads at a time; throws nothing.
using PageAnswers = std::function<PageReply(const std::string& path, const PageParameters&)>;

inline constexpr const char* kJsonType = "application/json";

// Of the page whose document is `document` ("dash.html"): that at "/", what both load at its name;
// nothing at other paths.
std::optional<PageReply> page_file(std::string_view document, std::string_view path);

// {"error": text}.
PageReply page_error(int status, const std::string& text);

}  // namespace lockstep::cli
