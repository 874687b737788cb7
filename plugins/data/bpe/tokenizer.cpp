// SPDX-License-Identifier: Apache-2.0
#include "bpe.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include <orrery/sdk/utf8.hpp>
#include "../refuse.h"
#include "byte_characters.h"

namespace data {
namespace {

// The pairs that are merged, each with its place in the order of learning. In tiktoken's files that
// is the id of what is made, whichever pair makes it.
class Merges {
 public:
  explicit Merges(const Bpe& bpe) {
    for (size_t i = 0; i < bpe.merges.size(); ++i) {
      const Bpe::Merge& merge = bpe.merges[i];
      by_pair_[key(merge.left, merge.right)] = {
          bpe.whole_first ? static_cast<size_t>(merge.made) : i, merge.made};
    }
  }

  // Again and again the pair that was learned first, of several the leftmost.
  void merge(std::vector<int32_t>& ids) const {
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> before(ids.size()), behind(ids.size());  // the neighbours that are left
    for (size_t i = 0; i < ids.size(); ++i)
      before[i] = i ? i - 1 : kNone, behind[i] = i + 1 < ids.size() ? i + 1 : kNone;
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto offer = [&](size_t at) {
      if (at == kNone || behind[at] == kNone) return;
      const int32_t left = ids[at], right = ids[behind[at]];
      if (const auto found = by_pair_.find(key(left, right)); found != by_pair_.end())
        queue.push({found->second.rank, at, left, right, found->second.made});
    };
    for (size_t i = 0; i < ids.size(); ++i) offer(i);
    while (!queue.empty()) {
      const auto [rank, at, left, right, made] = queue.top();
      queue.pop();
      const size_t next = behind[at];
      if (ids[at] != left || next == kNone || ids[next] != right) continue;  // merged since
      ids[at] = made, ids[next] = kGone;
      behind[at] = behind[next];
      if (behind[at] != kNone) before[behind[at]] = at;
      offer(before[at]), offer(at);
    }
    std::erase(ids, kGone);
  }

 private:
  static constexpr int32_t kGone = -1;
  struct Ranked {
    size_t rank;
    int32_t made;
  };
  struct Candidate {
    size_t rank, at;
    int32_t left, right, made;
    auto operator<=>(const Candidate&) const = default;
  };

  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::unordered_map<uint64_t, Ranked> by_pair_;
};

// The special tokens of a text, from its begin to its end.
class Specials {
 public:
  Specials(const std::map<std::string, int32_t>& ids, std::string_view text) : text_(text) {
    for (const auto& special : ids) next_.push_back({text.find(special.first), &special});
  }
  struct Found {
    size_t at;
    const std::pair<const std::string, int32_t>* special;  // null: none follows
  };
  // The first one from `begin` on; of several at one place the longest.
  // REQUIRES: `begin` is never before that of the last call.
  Found next(size_t begin) {
    Found first{text_.size(), nullptr};
    for (Found& each : next_) {
      if (each.at < begin) each.at = text_.find(each.special->first, begin);
      const bool longer = first.special && each.special->first.size() > first.special->first.size();
      if (each.at < first.at || (each.at == first.at && longer)) first = each;
    }
    return first;
  }

 private:
  std::vector<Found> next_;  // of each special token
  std::string_view text_;
};

class BpeTokenizer : public orr::Tokenizer {
 public:
  BpeTokenizer(Bpe bpe, const std::string& name) : bpe_(std::move(bpe)), merges_(bpe_) {
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
    Specials specials(bpe_.special, whole);
    for (size_t begin = 0; begin < text.size();) {
      const auto [at, special] = specials.next(begin);
      for (std::string_view part : pretokens(bpe_.split, whole.substr(begin, at - begin), name)) {
        auto [entry, is_new] = known.try_emplace(part);
        if (is_new) entry->second = merged(part);
        all.insert(all.end(), entry->second.begin(), entry->second.end());
      }
      if (special) all.push_back(special->second);
      begin = at + (special ? special->first.size() : 0);
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
