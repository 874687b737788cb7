// SPDX-License-Identifier: Apache-2.0
//
// The secret that the ranks of a job on several hosts share, and how each shows the other that it
// has it: by a keyed hash of random bytes that both have chosen. The secret itself is never sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery {

constexpr const char* token_variable = "ORRERY_TOKEN";

std::string new_token();
// Bytes that nobody has seen before.
std::string new_nonce();
constexpr size_t nonce_bytes = 32, proof_bytes = 32;

// Shows that its author has the token and means this text. Texts differ in more than what is chosen
// by the other side.
std::string proof(const std::string& token, const std::string& text);
bool proves(const std::string& shown, const std::string& token, const std::string& text);

// What a rank's proof covers when it joins, and what the server's does in its answer.
std::string join_text(const std::string& nonce, const std::string& own_nonce, uint32_t rank,
                      const std::string& size);
std::string welcome_text(const std::string& nonce, const std::string& join_key);

}  // namespace orrery
