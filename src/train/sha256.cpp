#include "train/sha256.h"

#include "lockstep/error.h"

#include <openssl/evp.h>

namespace lockstep::train {
namespace {

void require(int succeeded) {
  if (succeeded != 1) {
    throw SystemError("SHA-256: OpenSSL refused; is a FIPS or other restricted set-up in force?");
  }
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  require(context_ != nullptr ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, std::size_t bytes) {
  require(EVP_DigestUpdate(context_.get(), data, bytes));
}

Digest Sha256::finish() {
  Digest digest{};
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
  return digest;
}

std::string hex(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace lockstep::train
