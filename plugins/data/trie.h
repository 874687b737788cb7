// SPDX-License-Identifier: Apache-2.0
//
// Texts by their beginnings: which of them stand at a place of another text.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace data {

class Trie {
 public:
  // `value` is at least 0; of a text that is added twice the last counts.
  // REQUIRES: the text is not empty.
  void add(std::string_view text, int32_t value) {
    firsts_.set(static_cast<unsigned char>(text[0]));
    int32_t node = 0;
    for (char byte : text) {
      const auto [edge, is_new] = edges_.try_emplace(key(node, byte), 0);
      if (is_new) edge->second = static_cast<int32_t>(values_.size()), values_.push_back(kNone);
      node = edge->second;
    }
    values_[static_cast<size_t>(node)] = value;
  }

  // `found(end, value)` for every text that stands at `begin`, the shorter ones first. [any thread]
  template <class Found>
  void each_at(std::string_view text, size_t begin, Found&& found) const {
    if (begin >= text.size() || !firsts_.test(static_cast<unsigned char>(text[begin]))) return;
    int32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto edge = edges_.find(key(node, text[at]));
      if (edge == edges_.end()) return;
      node = edge->second;
      if (const int32_t value = values_[static_cast<size_t>(node)]; value != kNone)
        found(at + 1, value);
    }
  }

  struct Match {
    size_t begin, end;
    int32_t value;  // -1: none follows, begin and end are that of the text
  };
  // The first text from `begin` on; of several at one place the longest. [any thread]
  Match next(std::string_view text, size_t begin) const {
    Match match{text.size(), text.size(), kNone};
    for (size_t at = begin; at < text.size() && match.value == kNone; ++at)
      each_at(text, at, [&](size_t end, int32_t value) { match = {at, end, value}; });
    return match;
  }

 private:
  static constexpr int32_t kNone = -1;
  static uint64_t key(int32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<uint64_t, int32_t> edges_;
  std::vector<int32_t> values_{kNone};  // of the nodes
  std::bitset<256> firsts_;             // bytes with which texts begin
};

}  // namespace data
