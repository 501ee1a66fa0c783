#include "cli/page_reply.h"

#include <nlohmann/json.hpp>

namespace lockstep::cli {

PageReply page_error(int status, const std::string& text) {
  const nlohmann::ordered_json error{{"error", text}};
  return {status, kJsonType,
          error.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace lockstep::cli
