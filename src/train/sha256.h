// SHA-256 over bytes that arrive in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace lockstep::train {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  // Throws SystemError when the cryptographic library refuses.
  Sha256();
  ~Sha256();
  void update(const void* data, std::size_t bytes);
  // Ends the computation; nothing may follow.
  Digest finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

// Lower-case hexadecimal.
std::string hex(const Digest& digest);

}  // namespace lockstep::train
