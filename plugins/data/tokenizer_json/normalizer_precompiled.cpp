// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's table of what becomes of characters, as T5's and XLM-R's files have it, in
// base64: the bytes of a double-array trie (u32, little-endian), the trie of 32-bit units, and the
// new texts, each of which ends with a zero byte.
#include <utf8proc.h>

#include "../bpe/base64.h"
#include "changes.h"

namespace data {
namespace {

uint32_t unit_at(const std::string& bytes, size_t number) {
  uint32_t unit = 0;
  for (size_t i = 0; i < 4; ++i)
    unit |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[4 * number + i])) << (8 * i);
  return unit;
}

size_t offset_of(uint32_t unit) { return size_t{unit >> 10} << ((unit & 1u << 9) >> 6); }

// The end of the grapheme cluster that begins at `begin`.
size_t end_of_grapheme(std::string_view text, size_t begin) {
  orr::CodePoint last = orr::code_point(text, begin);
  utf8proc_int32_t state = 0;
  size_t at = begin + last.bytes;
  while (at < text.size()) {
    const orr::CodePoint next = orr::code_point(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state))
      break;
    at += next.bytes, last = next;
  }
  return at;
}

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Part& part) {
    const std::string bytes = from_base64(part.text("precompiled_charsmap"));
    const size_t trie = bytes.size() < 4 ? 0 : unit_at(bytes, 0);
    if (trie == 0 || trie % 4 || trie > bytes.size() - 4)
      part.refuse("'precompiled_charsmap' is cut short, or no table of SentencePiece");
    for (size_t i = 1; i <= trie / 4; ++i) units_.push_back(unit_at(bytes, i));
    texts_ = bytes.substr(4 + trie);
    for (size_t at = 0; at < texts_.size();) {
      const size_t size = orr::code_point(texts_, at).bytes;
      if (!size) part.refuse("'precompiled_charsmap' makes texts that are not UTF-8");
      at += size;
    }
  }

  void apply(Normal& normal) const override {
    const std::string_view text = normal.text;
    constexpr size_t kMostBytes = 5;  // of a cluster that is looked up as a whole
    std::string made;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = end_of_grapheme(text, begin);
      const std::string_view cluster = text.substr(begin, end - begin);
      if (cluster.size() <= kMostBytes && add_changed(made, cluster)) continue;
      each_character(cluster, [&](char32_t code, size_t from, size_t to) {
        if (!add_changed(made, cluster.substr(from, to - from))) add_character(made, code);
      });
    }
    normal.text = std::move(made);
  }

 private:
  // Adds what the table has for the shortest beginning of `chunk` that is in it; false for none.
  bool add_changed(std::string& made, std::string_view chunk) const {
    size_t node = offset_of(units_[0]);
    for (char byte : chunk) {
      const auto label = static_cast<unsigned char>(byte);
      node ^= label;
      if (label == 0 || node >= units_.size()) return false;
      const uint32_t unit = units_[node];
      if ((unit & (1u << 31 | 0xff)) != label) return false;
      node ^= offset_of(unit);
      if (unit >> 8 & 1) return add_text(made, node);
    }
    return false;
  }

  bool add_text(std::string& made, size_t leaf) const {
    const size_t begin = leaf < units_.size() ? units_[leaf] & ~(1u << 31) : texts_.size();
    if (begin >= texts_.size() || (static_cast<unsigned char>(texts_[begin]) & 0xc0) == 0x80)
      return false;  // of an altered table
    made += std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
    return true;
  }

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(Part& part) {
  return std::make_unique<Precompiled>(part);
}

}  // namespace data
