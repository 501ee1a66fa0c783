// Token ids as they lie in memory or in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

namespace lockstep::data {

// A token's number in its tokenizer, in [0, Tokenizer::vocabulary()).
using TokenId = std::uint32_t;

// The narrowest of 1, 2 and 4 bytes that holds every id below `vocabulary`.
constexpr int width_bytes(std::int64_t vocabulary) {
  return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
}

// A view of consecutive ids of 1, 2 or 4 bytes each; owns nothing.
class TokenSpan {
 public:
  TokenSpan() = default;
  template <class Id>
  TokenSpan(std::span<const Id> ids) : ids_(ids) {}

  std::size_t size() const {
    return std::visit([](auto ids) { return ids.size(); }, ids_);
  }
  TokenId operator[](std::size_t i) const {
    return std::visit([=](auto ids) { return static_cast<TokenId>(ids[i]); }, ids_);
  }
  TokenSpan subspan(std::size_t offset, std::size_t count) const {
    return std::visit([=](auto ids) { return TokenSpan(ids.subspan(offset, count)); }, ids_);
  }
  TokenSpan first(std::size_t count) const { return subspan(0, count); }
  TokenSpan last(std::size_t count) const { return subspan(size() - count, count); }

  // Calls `body` with the ids as a std::span of their own width.
  template <class Body>
  decltype(auto) visit(Body&& body) const {
    return std::visit(std::forward<Body>(body), ids_);
  }

 private:
  std::variant<std::span<const std::uint8_t>, std::span<const std::uint16_t>,
               std::span<const std::uint32_t>>
      ids_;
};

}  // namespace lockstep::data
