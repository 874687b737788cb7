// SPDX-License-Identifier: Apache-2.0
//
// Tokens that stand for bytes: of the byte level, and "<0x0A>". Bytes that are not UTF-8 become
// U+FFFD.
#include <charconv>
#include <optional>

#include <orrery/sdk/utf8.hpp>
#include "../bpe/byte_characters.h"
#include "decoders.h"

namespace data {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// How many bytes at `at`, which are not UTF-8, one U+FFFD stands for: as many as could begin a
// character (Unicode Standard, section 3.9, "maximal subparts").
size_t maximal_subpart(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const int lead = byte(0), next = byte(1);
  const bool is_next = (next & 0xc0) == 0x80;
  if (lead >= 0xe0 && lead < 0xf0)
    return is_next && !(lead == 0xe0 && next < 0xa0) && !(lead == 0xed && next >= 0xa0) ? 2 : 1;
  if (lead < 0xf0 || lead > 0xf4 || !is_next || (lead == 0xf0 && next < 0x90) ||
      (lead == 0xf4 && next >= 0x90))
    return 1;
  return (byte(2) & 0xc0) == 0x80 ? 3 : 2;
}

std::string replaced(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = orr::code_point(bytes, at).bytes;
    if (size) {
      text += bytes.substr(at, size);
      at += size;
    } else {
      text += kReplacement;
      at += maximal_subpart(bytes, at);
    }
  }
  return text;
}

class ByteLevel : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of(token);
    tokens.assign(1, replaced(bytes));
  }
};

class ByteFallback : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> made;
    std::string bytes;  // of tokens that follow each other
    const auto end_bytes = [&] {
      if (replaced(bytes) == bytes) {
        if (!bytes.empty()) made.push_back(bytes);
      } else {
        made.insert(made.end(), bytes.size(), std::string(kReplacement));
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += *byte;
      } else {
        end_bytes();
        made.push_back(std::move(token));
      }
    }
    end_bytes();
    tokens = std::move(made);
  }

 private:
  static std::optional<char> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return {};
    unsigned value = 0;
    const char* end = token.data() + 5;
    const auto [stop, error] = std::from_chars(token.data() + 3, end, value, 16);
    if (error != std::errc() || stop != end) return {};
    return static_cast<char>(value);
  }
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder(Part& part) {
  for (const char* field : {"add_prefix_space", "trim_offsets", "use_regex"}) part.ignore(field);
  return std::make_unique<ByteLevel>();
}

std::unique_ptr<Decoder> make_byte_fallback_decoder() { return std::make_unique<ByteFallback>(); }

}  // namespace data
