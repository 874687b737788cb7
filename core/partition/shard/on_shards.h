// SPDX-License-Identifier: Apache-2.0
//
// Ops of forward and backward that a rank computes on its piece of a parameter, because what they
// make is read through `unshard` alone (docs/ops.md): a cast or a quantizer before a gathering.
#pragma once

#include <optional>
#include <vector>

#include "partition/shard/units.h"

namespace orrery {

// A value of forward or backward that lies in pieces, as units[unit].read[member] does.
struct ShardValue {
  size_t unit = 0, member = 0;
  int64_t per = 1;    // elements of the parameter for each element of the value
  int64_t width = 0;  // the value is rows of so many elements, and a piece is whole rows; 0: flat
  bool operator==(const ShardValue&) const = default;
};

class OnShards {
 public:
  // REQUIRES: program and units outlive this.
  OnShards(const Program& p, const std::vector<Unit>& units);

  // Null for values that are whole.
  const ShardValue* of(ValueId v) const;
  // Whether a rank computes this op on its pieces.
  bool computes(OpId op) const { return computes_[static_cast<size_t>(op)] != 0; }
  // Whether anything reads v.
  bool is_read(ValueId v) const {
    const auto i = static_cast<size_t>(v);
    return needed_[i] || !readers_[i].empty();
  }
  // The cuts of v, in its elements.
  Dims cuts(const ShardValue& v) const;
  // The dims of the piece of v that holds these elements of it.
  Dims dims(const ShardValue& v, Range piece) const;

 private:
  std::optional<ShardValue> result_of(const Op& op) const;
  std::optional<ShardValue> beside(ValueId x, const Dims& dims) const;
  std::optional<ShardValue> pointwise(const Op& op) const;
  std::optional<ShardValue> reshape(const Op& op) const;
  std::optional<ShardValue> reduce(const Op& op) const;
  void find();
  bool is_read_whole(const Op& op) const;
  bool drop_some();

  const Program& p_;
  const std::vector<Unit>& units_;
  std::vector<std::optional<ShardValue>> value_;  // by value
  std::vector<char> computes_;                    // by op
  std::vector<std::vector<OpId>> readers_;        // by value, of forward and backward
  std::vector<char> needed_;                      // by value: a result, the update or a state
};

}  // namespace orrery
