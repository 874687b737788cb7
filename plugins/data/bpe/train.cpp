// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "../refuse.h"
#include "bpe.h"
#include "byte_characters.h"

namespace data {
namespace {

using Pair = std::pair<int32_t, int32_t>;
struct PairHash {
  size_t operator()(const Pair& pair) const {
    return std::hash<uint64_t>()(static_cast<uint64_t>(pair.first) << 32 |
                                 static_cast<uint32_t>(pair.second));
  }
};

struct Pretoken {
  std::vector<int32_t> ids;
  int64_t count = 0;  // in the text
};

// The pretokens of a text in the tokens so far, and how often each pair of tokens occurs.
class PairCounts {
 public:
  void add(Pretoken pretoken) {
    for (size_t i = 0; i + 1 < pretoken.ids.size(); ++i)
      change({pretoken.ids[i], pretoken.ids[i + 1]}, pretoken.count, pretokens_.size());
    pretokens_.push_back(std::move(pretoken));
  }

  // The pair that occurs most often, of several the one with smaller ids; a count of 0: none.
  std::pair<Pair, int64_t> most_frequent() {
    for (const Pair& pair : changed_) queue_.push({pairs_[pair].count, -pair.first, -pair.second});
    changed_.clear();
    for (; !queue_.empty(); queue_.pop()) {
      const auto [count, left, right] = queue_.top();
      const auto found = pairs_.find({-left, -right});
      if (found != pairs_.end() && found->second.count == count) return {found->first, count};
    }  // else it has changed since, and is in the queue as it is now
    return {};
  }

  void merge(Pair pair, int32_t made) {
    std::vector<size_t> where = std::move(pairs_[pair].where);
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    for (size_t place : where) merge_in(place, pair, made);
    pairs_.erase(pair), changed_.erase(pair);
  }

 private:
  struct Occurrences {
    int64_t count = 0;
    std::vector<size_t> where;  // where it may stand; some of them twice
  };

  void change(Pair pair, int64_t by, size_t place) {
    Occurrences& of = pairs_[pair];
    of.count += by;
    changed_.insert(pair);
    if (by > 0 && (of.where.empty() || of.where.back() != place)) of.where.push_back(place);
  }

  void merge_in(size_t place, Pair pair, int32_t made) {
    auto& [ids, count] = pretokens_[place];
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      if (Pair{ids[i], ids[i + 1]} != pair) continue;
      if (i > 0) {
        change({ids[i - 1], pair.first}, -count, place);
        change({ids[i - 1], made}, count, place);
      }
      ids[i] = made;
      ids.erase(ids.begin() + static_cast<ptrdiff_t>(i) + 1);
      if (i + 1 < ids.size()) {
        change({pair.second, ids[i + 1]}, -count, place);
        change({made, ids[i + 1]}, count, place);
      }
    }
  }

  std::vector<Pretoken> pretokens_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::unordered_set<Pair, PairHash> changed_;  // since the last call of most_frequent
  std::priority_queue<std::tuple<int64_t, int32_t, int32_t>> queue_;  // count, ids times -1
};

// The special tokens, then the bytes in the order of the characters that stand for them.
std::vector<std::string> first_tokens(const BpeTraining& training) {
  std::vector<std::string> tokens = training.special;
  std::vector<int> bytes(256);
  std::iota(bytes.begin(), bytes.end(), 0);
  std::ranges::sort(bytes, {},
                    [](int byte) { return character_of(static_cast<unsigned char>(byte)); });
  for (int byte : bytes) tokens.emplace_back(1, static_cast<char>(byte));
  return tokens;
}

}  // namespace

Bpe train_bpe(const std::string& text, const std::string& name, const BpeTraining& training) {
  Bpe bpe;
  bpe.tokens = first_tokens(training);
  bpe.split = training.split;
  if (training.vocab < static_cast<int64_t>(bpe.tokens.size()))
    refuse("train_bpe: vocab is ", training.vocab, ": the bytes and the special tokens alone are ",
           bpe.tokens.size());
  for (const std::string& token : training.special) {
    check_special(token, true);
    const auto id = static_cast<int32_t>(bpe.special.size());
    if (!bpe.special.try_emplace(token, id).second)
      refuse("train_bpe: the special token '", token, "' is given twice");
    bpe.literal.insert(id);
  }
  std::unordered_map<std::string, int32_t> ids;  // by the texts of vocab.json
  for (size_t id = 0; id < bpe.tokens.size(); ++id) {
    const std::string token = written(bpe, static_cast<int32_t>(id));
    if (!ids.try_emplace(token, static_cast<int32_t>(id)).second)
      refuse("train_bpe: the special token '", token, "' is a byte; call it otherwise");
  }
  std::unordered_map<std::string_view, int64_t> counts;
  for (std::string_view part : pretokens(training.split, text, name)) ++counts[part];
  PairCounts pairs;
  for (const auto& [part, count] : counts) {
    Pretoken pretoken{{}, count};
    for (char byte : part) pretoken.ids.push_back(ids[characters_of(std::string(1, byte))]);
    pairs.add(std::move(pretoken));
  }
  while (static_cast<int64_t>(bpe.tokens.size()) < training.vocab) {
    const auto [pair, count] = pairs.most_frequent();
    if (count < std::max<int64_t>(1, training.min_frequency)) break;
    const std::string token =
        bpe.tokens[static_cast<size_t>(pair.first)] + bpe.tokens[static_cast<size_t>(pair.second)];
    const auto [made, is_new] =
        ids.try_emplace(characters_of(token), static_cast<int32_t>(ids.size()));
    if (is_new) bpe.tokens.push_back(token);
    bpe.merges.push_back({pair.first, pair.second, made->second});
    pairs.merge(pair, made->second);
  }
  return bpe;
}

}  // namespace data
