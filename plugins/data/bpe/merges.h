// SPDX-License-Identifier: Apache-2.0
//
// The pairs of tokens that a BPE merges, each with its place in the order of learning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace data {

class Merges {
 public:
  // Of a pair that is added twice the last counts.
  void add(int32_t left, int32_t right, size_t rank, int32_t made) {
    by_pair_[key(left, right)] = {rank, made};
  }
  // Again and again the pair of the lowest rank, of several the leftmost. Takes n log n steps.
  // [any thread]
  void merge(std::vector<int32_t>& ids) const;

 private:
  struct Ranked {
    size_t rank;
    int32_t made;
  };
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::unordered_map<uint64_t, Ranked> by_pair_;
};

}  // namespace data
