// SPDX-License-Identifier: Apache-2.0
//
// Text as its characters (the option `kind` is "chars"), whose ids are in the order of their code
// points, or as its bytes ("bytes").
#include <map>
#include <orrery/sdk/tokenizer.hpp>
#include <orrery/sdk/utf8.hpp>
#include <string_view>

#include "refuse.h"

namespace data {
namespace {

// Calls visit(code, symbol) for every character.
template <class Visit>
void each_character(const std::string& text, const std::string& name, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const orr::CodePoint point = orr::code_point(text, at);
    if (!point.bytes) refuse(name, ": byte ", at, " is not UTF-8; read it with tokens = 'bytes'");
    visit(point.code, std::string_view(text).substr(at, point.bytes));
    at += point.bytes;
  }
}

// `id`, as an index. Throws for one that is no token.
size_t checked_id(int64_t id, int64_t vocab) {
  if (id < 0 || id >= vocab) refuse("decode: token ", id, " is outside 0..", vocab - 1);
  return static_cast<size_t>(id);
}

// What has no files of its own.
class OfText : public orr::Tokenizer {
 public:
  void save(const std::string&) const override {
    refuse("save: characters and bytes are their own vocabulary: there are no files");
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
        refuse(name, ": the character '", symbol, "' does not occur in the text of this dataset");
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

std::unique_ptr<orr::Tokenizer> make(const std::string& text, const std::string& name,
                                     const orr::DataOptions& options) {
  const std::string kind = options.text("kind", "chars");
  if (kind == "bytes") return std::make_unique<ByteTokens>();
  if (kind == "chars") return std::make_unique<CharacterTokens>(text, name);
  refuse("tokens is '", kind, "': 'chars' or 'bytes'");
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "text", "0.1.0", "Text as its characters or its bytes",
           orr::Tokenizers<data::make>::entry, 1, {{"data", 1, 1}})
