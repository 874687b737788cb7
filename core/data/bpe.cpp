// SPDX-License-Identifier: Apache-2.0
#include "data/bpe.h"

#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/text_file.h"
#include "data/gpt2_split.h"
#include "data/text.h"
#include "data/utf8.h"

namespace orrery {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;  // of a file

// In these files a byte is a character that can be seen: itself where it is one, else one of
// U+0100 and above, in the order of the bytes.
bool is_visible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

std::unordered_map<char32_t, char> bytes_by_character() {
  std::unordered_map<char32_t, char> bytes;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    bytes[is_visible(byte) ? static_cast<char32_t>(byte) : next++] = static_cast<char>(byte);
  return bytes;
}

// A token's bytes. One that has other characters than those of bytes, such as one added by hand, is
// kept as it is.
std::string bytes_of(const std::string& token) {
  static const auto kBytes = bytes_by_character();
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const CodePoint character = code_point(token, at);
    const auto found = kBytes.find(character.code);
    if (!character.bytes || found == kBytes.end()) return token;
    bytes += found->second;
    at += character.bytes;
  }
  return bytes;
}

struct Merge {
  size_t rank;
  int32_t id;
};

class Bpe : public Tokenizer {
 public:
  Bpe(const std::string& vocab, const std::string& merges) {
    read_vocab(vocab);
    read_merges(merges, vocab);
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids_.find(std::string(1, static_cast<char>(byte)));
      if (found == ids_.end())
        fail(ORR_INVALID,
             "{}: no token is byte {} alone: this is not the vocabulary of a "
             "byte-level BPE",
             vocab, byte);
      byte_ids_[static_cast<size_t>(byte)] = found->second;
    }
  }

  int64_t vocab() const override { return static_cast<int64_t>(tokens_.size()); }

  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    std::unordered_map<std::string_view, std::vector<int32_t>> known;
    std::vector<int32_t> all;
    for (std::string_view pretoken : gpt2_split(text, name)) {
      auto [entry, is_new] = known.try_emplace(pretoken);
      if (is_new) entry->second = merged(pretoken);
      all.insert(all.end(), entry->second.begin(), entry->second.end());
    }
    return all;
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (int64_t id : ids) text += tokens_[checked_id(id, vocab())];
    return text;
  }

 private:
  void read_vocab(const std::string& path) {
    const auto json =
        nlohmann::json::parse(read_text(path, path, ORR_INVALID, kMostBytes), nullptr, false);
    if (!json.is_object() || json.empty())
      fail(ORR_INVALID, "{}: not a vocabulary: expected JSON, {{\"token\": id, ...}}", path);
    tokens_.resize(json.size());
    std::vector<bool> given(json.size());
    for (const auto& [token, id] : json.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= json.size() || given[id.get<size_t>()])
        fail(ORR_INVALID, "{}: token '{}' has the id {}: ids are 0..{}, each once", path, token,
             id.dump(), json.size() - 1);
      given[id.get<size_t>()] = true;
      tokens_[id.get<size_t>()] = bytes_of(token);
      ids_[bytes_of(token)] = id.get<int32_t>();
    }
  }

  void read_merges(const std::string& path, const std::string& vocab) {
    const std::string text = read_text(path, path, ORR_INVALID, kMostBytes);
    int64_t line = 0;
    for (size_t at = 0; at < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string pair = text.substr(at, end - at);
      at = end + 1;
      if (pair.ends_with('\r')) pair.pop_back();
      if (pair.empty() || (line == 0 && pair.starts_with("#version"))) continue;
      const size_t blank = pair.find(' ');
      if (blank == pair.npos || pair.find(' ', blank + 1) != pair.npos)
        fail(ORR_INVALID, "{}: line {}: '{}': expected two tokens with a blank between them", path,
             line + 1, pair.substr(0, 80));
      const std::string left = bytes_of(pair.substr(0, blank)),
                        right = bytes_of(pair.substr(blank + 1));
      const auto id = [&](const std::string& token) {
        const auto found = ids_.find(token);
        if (found == ids_.end())
          fail(ORR_INVALID,
               "{}: line {}: '{}' needs a token that {} does not have; give the two "
               "files of one tokenizer",
               path, line + 1, pair.substr(0, 80), vocab);
        return found->second;
      };
      merges_.try_emplace(key(id(left), id(right)), Merge{merges_.size(), id(left + right)});
    }
  }

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  // Again and again the pair that was learned first, wherever it stands.
  std::vector<int32_t> merged(std::string_view pretoken) const {
    std::vector<int32_t> ids;
    for (char byte : pretoken) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    while (const Merge* first = first_merge(ids)) {
      size_t to = 0;
      for (size_t from = 0; from < ids.size(); ++to) {
        const bool merges = from + 1 < ids.size() && merge_of(ids[from], ids[from + 1]) == first;
        ids[to] = merges ? first->id : ids[from];
        from += merges ? 2 : 1;
      }
      ids.resize(to);
    }
    return ids;
  }

  const Merge* merge_of(int32_t left, int32_t right) const {
    const auto found = merges_.find(key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  const Merge* first_merge(const std::vector<int32_t>& ids) const {
    const Merge* first = nullptr;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merge* merge = merge_of(ids[i], ids[i + 1]);
      if (merge && (!first || merge->rank < first->rank)) first = merge;
    }
    return first;
  }

  std::vector<std::string> tokens_;  // bytes of each
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<uint64_t, Merge> merges_;
  std::array<int32_t, 256> byte_ids_{};
};

}  // namespace

std::shared_ptr<const Tokenizer> load_bpe(const std::string& vocab, const std::string& merges) {
  return std::make_shared<Bpe>(vocab, merges);
}

}  // namespace orrery
