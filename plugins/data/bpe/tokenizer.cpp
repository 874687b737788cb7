// SPDX-License-Identifier: Apache-2.0
#include "bpe.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <orrery/sdk/utf8.hpp>
#include "../refuse.h"
#include "../trie.h"
#include "byte_characters.h"
#include "merges.h"

namespace data {
namespace {

// In tiktoken's files the rank of a merge is the id of what is made, whichever pair makes it.
Merges merges_of(const Bpe& bpe) {
  Merges merges;
  for (size_t i = 0; i < bpe.merges.size(); ++i) {
    const Bpe::Merge& merge = bpe.merges[i];
    merges.add(merge.left, merge.right, bpe.whole_first ? static_cast<size_t>(merge.made) : i,
               merge.made);
  }
  return merges;
}

Trie texts_of(const std::map<std::string, int32_t>& special) {
  Trie texts;
  for (const auto& [text, id] : special) texts.add(text, id);
  return texts;
}

class BpeTokenizer : public orr::Tokenizer {
 public:
  BpeTokenizer(Bpe bpe, const std::string& name)
      : bpe_(std::move(bpe)), merges_(merges_of(bpe_)), special_(texts_of(bpe_.special)) {
    for (size_t id = 0; id < bpe_.tokens.size(); ++id)
      if (!bpe_.literal.contains(static_cast<int32_t>(id)))
        ids_.try_emplace(bpe_.tokens[id], static_cast<int32_t>(id));
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids_.find(std::string(1, static_cast<char>(byte)));
      if (found == ids_.end())
        refuse(name, ": no token is byte ", byte,
               " alone: this is not the vocabulary of a byte-level BPE");
      bytes_[static_cast<size_t>(byte)] = found->second;
    }
  }

  int64_t vocab() const override { return static_cast<int64_t>(bpe_.tokens.size()); }

  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    std::unordered_map<std::string_view, std::vector<int32_t>> known;
    std::vector<int32_t> all;
    const std::string_view whole = text;
    for (size_t begin = 0; begin < text.size();) {
      const auto [at, end, special] = special_.next(whole, begin);
      for (std::string_view part : pretokens(bpe_.split, whole.substr(begin, at - begin), name)) {
        auto [entry, is_new] = known.try_emplace(part);
        if (is_new) entry->second = merged(part);
        all.insert(all.end(), entry->second.begin(), entry->second.end());
      }
      if (special >= 0) all.push_back(special);
      begin = end;
    }
    return all;
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (int64_t id : ids) {
      if (id < 0 || id >= vocab()) refuse("decode: token ", id, " is outside 0..", vocab() - 1);
      const std::string& token = bpe_.tokens[static_cast<size_t>(id)];
      if (token.empty()) refuse("decode: no token has the id ", id);
      text += token;
    }
    return text;
  }

  void save(const std::string& directory) const override {
    if (bpe_.whole_first) return write_tiktoken(bpe_, directory + "/ranks.tiktoken");
    write_bpe(bpe_, directory + "/vocab.json", directory + "/merges.txt");
  }

 private:
  std::vector<int32_t> merged(std::string_view part) const {
    if (bpe_.whole_first)
      if (const auto found = ids_.find(std::string(part)); found != ids_.end())
        return {found->second};
    std::vector<int32_t> ids;
    for (char byte : part) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    merges_.merge(ids);
    return ids;
  }

  Bpe bpe_;
  Merges merges_;
  Trie special_;
  std::unordered_map<std::string, int32_t> ids_;  // of all that bytes become
  std::array<int32_t, 256> bytes_{};
};

}  // namespace

std::string written(const Bpe& bpe, int32_t id) {
  const std::string& token = bpe.tokens[static_cast<size_t>(id)];
  return bpe.literal.contains(id) || token.empty() ? token : characters_of(token);
}

void check_special(const std::string& text, bool in_vocab_json) {
  if (text.empty()) refuse("special: a special token has at least one byte");
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = orr::code_point(text, at).bytes;
    if (!bytes) refuse("special: '", text, "' is not UTF-8: vocab.json cannot hold it");
    at += bytes;
  }
  if (in_vocab_json && bytes_of(text) != text)
    refuse("special: '", text, "' is what vocab.json has for other bytes; call it otherwise");
}

namespace {

// The id of the token that vocab.json, or tiktoken's file, has as `text`; that of the next if none.
size_t id_of(const Bpe& bpe, const std::string& text) {
  size_t id = 0;
  for (; id < bpe.tokens.size(); ++id)
    if ((bpe.whole_first ? bpe.tokens[id] : written(bpe, static_cast<int32_t>(id))) == text) break;
  return id;
}

}  // namespace

void add_special(Bpe& bpe, const std::map<std::string, int64_t>& names) {
  for (const auto& [text, wanted] : names) {
    check_special(text, !bpe.whole_first);
    const size_t known = id_of(bpe, text);
    const bool is_known = known < bpe.tokens.size();
    const size_t id = wanted < 0 ? known : static_cast<size_t>(wanted);
    if (id >= kMostIds)
      refuse("special: '", text, "' has the id ", id, ": ids are below ", kMostIds);
    if (is_known && id != known)
      refuse("special: '", text, "' has the id ", id, ", in the vocabulary it has ", known);
    if (id >= bpe.tokens.size()) bpe.tokens.resize(id + 1);
    if (!is_known && !bpe.tokens[id].empty())
      refuse("special: '", text, "' has the id ", id, ", which is that of '", bpe.tokens[id], "'");
    bpe.tokens[id] = text;
    bpe.special[text] = static_cast<int32_t>(id);
    if (!is_known) bpe.literal.insert(static_cast<int32_t>(id));
  }
}

std::unique_ptr<orr::Tokenizer> make_tokenizer(Bpe bpe, const std::string& name) {
  return std::make_unique<BpeTokenizer>(std::move(bpe), name);
}

}  // namespace data
