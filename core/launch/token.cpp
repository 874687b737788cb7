// SPDX-License-Identifier: Apache-2.0
#include "launch/token.h"

#include <sodium.h>

#include "base/error.h"

namespace orrery {
namespace {

unsigned char* bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }
const unsigned char* bytes(const std::string& s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}

void prepare() {
  if (sodium_init() < 0) fail(ORR_FAILED, "no random numbers from this machine");
}

}  // namespace

static_assert(proof_bytes == crypto_auth_hmacsha256_BYTES);

std::string new_nonce() {
  prepare();
  std::string nonce(nonce_bytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string new_token() {
  const std::string secret = new_nonce();
  std::string text(2 * secret.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes(secret), secret.size());
  text.pop_back();
  return text;
}

// HMAC-SHA-256, whose key, the token, may have any length.
std::string proof(const std::string& token, const std::string& text) {
  prepare();
  std::string out(proof_bytes, '\0');
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes(token), token.size());
  crypto_auth_hmacsha256_update(&state, bytes(text), text.size());
  crypto_auth_hmacsha256_final(&state, bytes(out));
  return out;
}

bool proves(const std::string& shown, const std::string& token, const std::string& text) {
  return shown.size() == proof_bytes &&
         sodium_memcmp(shown.data(), proof(token, text).data(), proof_bytes) == 0;
}

std::string join_text(const std::string& nonce, const std::string& own_nonce, uint32_t rank,
                      const std::string& size) {
  return "join" + nonce + own_nonce + std::to_string(rank) + " " + size;
}

std::string welcome_text(const std::string& nonce, const std::string& join_key) {
  return "welcome" + nonce + join_key;
}

}  // namespace orrery
