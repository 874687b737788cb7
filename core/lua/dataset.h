// SPDX-License-Identifier: Apache-2.0
//
// Datasets: columns over bytes in memory, and which samples make up a batch. A batch is a pure
// function of (seed, step), so that a run continues anywhere and no rank depends on another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/run.h"

namespace orrery::lua {

// Sample i of a column begins at byte offset + i * stride of `bytes`. Text has one token as stride,
// so samples overlap; y is x one token later.
struct Column {
  std::string name;
  Type row;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  int64_t offset = 0;
  int64_t stride = 0;
};

struct Dataset {
  std::vector<Column> columns;
  int64_t begin = 0;    // first sample
  int64_t samples = 0;  // samples from `begin` on
  int64_t window = 1;   // samples from one to the next in unshuffled order: ctx for text
  int64_t overlap = 0;  // samples at the end of a piece that reach into the next: ctx for text
  int64_t shard = 0, shards = 1;
  std::shared_ptr<const std::vector<std::string>> symbols;  // text: what token i stands for

  int64_t items() const;  // windows of this shard
};

struct BatchOrder {
  int64_t step = 1;  // from 1
  int64_t size = 1;
  bool shuffle = true;
  uint64_t seed = 1;
};

// The samples of one batch. Arrays: each epoch is a permutation. Shuffled text: random windows.
std::vector<int64_t> batch_samples(const Dataset& data, const BatchOrder& order);
BatchFields make_batch(const std::shared_ptr<const Dataset>& data, const BatchOrder& order);

// Text as tokens: "chars" (Unicode code points, ids in order of code point) or "bytes".
Dataset text_dataset(const std::string& text, const std::string& tokens, int64_t ctx,
                     const std::string& name);
std::vector<int32_t> encode(const Dataset& data, const std::string& text);
std::string decode(const Dataset& data, const std::vector<int64_t>& ids);

}  // namespace orrery::lua
