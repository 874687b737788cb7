// SPDX-License-Identifier: Apache-2.0
//
// The token: a secret that the ranks of a job on several hosts share. Each side proves to the other
// that it has the token, by a keyed hash of random bytes that both have chosen. The token itself is
// never sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery {

constexpr const char* token_variable = "ORRERY_TOKEN";

std::string new_token();
// Random bytes that are used once.
std::string new_nonce();
constexpr size_t nonce_bytes = 32, proof_bytes = 32;

// The proof that its author has the token, for this text. The texts of the two sides differ in more
// than the bytes that the other side chooses, so that a proof cannot be sent back.
std::string proof(const std::string& token, const std::string& text);
bool proves(const std::string& shown, const std::string& token, const std::string& text);

// The text that a rank's proof covers when it joins, and the one for the server's answer.
std::string join_text(const std::string& nonce, const std::string& own_nonce, uint32_t rank,
                      const std::string& size);
std::string welcome_text(const std::string& nonce, const std::string& join_key);

}  // namespace orrery
