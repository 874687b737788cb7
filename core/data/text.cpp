// SPDX-License-Identifier: Apache-2.0
//
#include "data/text.h"

#include <map>
#include <orrery/sdk/utf8.hpp>
#include <string_view>

#include "base/error.h"
#include "data/columns.h"

namespace orrery {
namespace {

// Calls visit(code, symbol) for every character.
template <class Visit>
void each_character(const std::string& text, const std::string& name, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const orr::CodePoint point = orr::code_point(text, at);
    if (!point.bytes)
      fail(ORR_INVALID, "{}: byte {} is not UTF-8; read it with tokens = 'bytes'", name, at);
    visit(point.code, std::string_view(text).substr(at, point.bytes));
    at += point.bytes;
  }
}

// `id`, as an index. Throws Error for one that is no token.
size_t checked_id(int64_t id, int64_t vocab) {
  if (id < 0 || id >= vocab) fail(ORR_INVALID, "decode: token {} is outside 0..{}", id, vocab - 1);
  return static_cast<size_t>(id);
}

// What has no files of its own.
class OfText : public Tokenizer {
 public:
  void save(const std::string&) const override {
    fail(ORR_INVALID, "save: characters and bytes are their own vocabulary: there are no files");
  }
};

class ByteTokens : public OfText {
 public:
  int64_t vocab() const override { return 256; }
  std::vector<int32_t> encode(const std::string& text, const std::string&) const override {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    return {bytes, bytes + text.size()};
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (int64_t id : ids) text += static_cast<char>(checked_id(id, vocab()));
    return text;
  }
};

// Ids in the order of the characters' code points.
class CharacterTokens : public OfText {
 public:
  CharacterTokens(const std::string& text, const std::string& name) {
    std::map<char32_t, std::string_view> seen;
    each_character(text, name, [&](char32_t code, std::string_view symbol) {
      if (code >= ids_.size()) ids_.resize(code + 1, kAbsent);
      if (ids_[code] == kAbsent) ids_[code] = 0, seen.emplace(code, symbol);
    });
    for (const auto& [code, symbol] : seen) {
      ids_[code] = static_cast<int32_t>(symbols_.size());
      symbols_.emplace_back(symbol);
    }
  }
  int64_t vocab() const override { return static_cast<int64_t>(symbols_.size()); }
  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    each_character(text, name, [&](char32_t code, std::string_view symbol) {
      if (code >= ids_.size() || ids_[code] == kAbsent)
        fail(ORR_INVALID, "{}: the character '{}' does not occur in the text of this dataset", name,
             symbol);
      ids.push_back(ids_[code]);
    });
    return ids;
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (int64_t id : ids) text += symbols_[checked_id(id, vocab())];
    return text;
  }

 private:
  static constexpr int32_t kAbsent = -1;
  std::vector<std::string> symbols_;
  std::vector<int32_t> ids_;  // by code point
};

}  // namespace

std::shared_ptr<const Tokenizer> text_tokenizer(const std::string& kind, const std::string& text,
                                                const std::string& name) {
  if (kind == "bytes") return std::make_shared<ByteTokens>();
  if (kind == "chars") return std::make_shared<CharacterTokens>(text, name);
  fail(ORR_INVALID, "tokens is '{}': 'chars' or 'bytes'", kind);
}

DatasetPtr text_dataset(const std::string& text, std::shared_ptr<const Tokenizer> tokenizer,
                        int64_t ctx, const std::string& name) {
  const std::vector<int32_t> ids = tokenizer->encode(text, name);
  const auto* begin = reinterpret_cast<const std::byte*>(ids.data());
  const auto bytes = std::make_shared<const std::vector<std::byte>>(begin, begin + ids.size() * 4);
  return windows_of(bytes, {Stored::i32}, 0, static_cast<int64_t>(ids.size()), ctx, name, "tokens",
                    std::move(tokenizer));
}

}  // namespace orrery
