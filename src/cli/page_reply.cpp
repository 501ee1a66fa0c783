#include "cli/page_reply.h"

#include "cli/page_files.h"

#include <nlohmann/json.hpp>

namespace lockstep::cli {

std::optional<PageReply> page_file(std::string_view document, std::string_view path) {
  for (const PageFile& file : page_files()) {
    const bool is_document = file.name.ends_with(".html");
    const bool asked_for = is_document ? path == "/" && file.name == document
                                       : path.starts_with('/') && path.substr(1) == file.name;
    if (asked_for) {
      return PageReply{200, std::string(file.type), std::string(file.content)};
    }
  }
  return std::nullopt;
}

PageReply page_error(int status, const std::string& text) {
  const nlohmann::ordered_json error{{"error", text}};
  return {status, kJsonType,
          error.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace lockstep::cli
