// SPDX-License-Identifier: Apache-2.0
//
// This rank's shard of a checkpoint: the boxes that it writes. What several ranks have, one of them
// writes, chosen so that all write about as many bytes: of two tensors of 1 MB that both of two
// ranks have, each rank writes one. All ranks come to the same choice without an exchange. [main
// thread]
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "program/state.h"
#include "run/saving.h"

namespace orrery {

class CheckpointShard {
 public:
  // Unless `balanced`, the lowest of several ranks writes what all of them have. With `copies` the
  // boxes are copied at once, else read when they are written.
  CheckpointShard(SaveContents contents, bool balanced, bool copies);

  // Adds the value that one coordinate has of a state. Throws Error if a parameter has a value that
  // is not finite, or another state has a NaN; a mask may hold -inf. REQUIRES: the state has a
  // value.
  void add(const std::string& tensor, const std::shared_ptr<State>& s, int32_t coordinate);
  // Adds a tensor of a checkpoint that every rank can read.
  void add(const std::string& tensor, const std::shared_ptr<const Checkpoint>& from);

  uint64_t copied() const { return copied_; }  // bytes
  SaveContents contents() && { return std::move(contents_); }

 private:
  void add_box(const std::string& tensor, const std::shared_ptr<State>& s, const Box& box);
  bool is_mine(const std::vector<size_t>& holders, uint64_t bytes);

  SaveContents contents_;
  std::vector<uint64_t> bytes_of_;  // by rank: what it has been chosen to write so far
  size_t me_;
  bool balanced_, copies_;
  uint64_t copied_ = 0;
};

}  // namespace orrery
