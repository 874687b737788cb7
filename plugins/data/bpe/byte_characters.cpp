// SPDX-License-Identifier: Apache-2.0
#include "byte_characters.h"

#include <array>
#include <unordered_map>

#include <orrery/sdk/utf8.hpp>

namespace data {
namespace {

bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

const std::array<char32_t, 256>& characters() {
  static const auto kAll = [] {
    std::array<char32_t, 256> all{};
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte)
      all[static_cast<size_t>(byte)] = is_visible(byte) ? static_cast<char32_t>(byte) : next++;
    return all;
  }();
  return kAll;
}

std::unordered_map<char32_t, char> by_character() {
  std::unordered_map<char32_t, char> bytes;
  for (size_t byte = 0; byte < 256; ++byte) bytes[characters()[byte]] = static_cast<char>(byte);
  return bytes;
}

}  // namespace

std::string bytes_of(const std::string& token) {
  static const auto kBytes = by_character();
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const orr::CodePoint character = orr::code_point(token, at);
    const auto found = kBytes.find(character.code);
    if (!character.bytes || found == kBytes.end()) return token;
    bytes += found->second;
    at += character.bytes;
  }
  return bytes;
}

bool stands_for_bytes(const std::string& token) { return characters_of(bytes_of(token)) == token; }

char32_t character_of(unsigned char byte) { return characters()[byte]; }

std::string characters_of(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    const char32_t code = character_of(byte);  // below U+0800, so at most two bytes of UTF-8
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

}  // namespace data
