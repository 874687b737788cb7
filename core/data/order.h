// SPDX-License-Identifier: Apache-2.0
//
// Which samples make up a batch. A batch is a pure function of (seed, step), so that a run goes on
// at any step without a position of its own to save, and no rank depends on another.
#pragma once

#include <vector>

#include "data/dataset.h"

namespace orrery {

// Every shards-th sample of a dataset.
struct Samples {
  DatasetPtr data;
  int64_t shard = 0, shards = 1;

  // The samples of an epoch; of text, windows side by side.
  int64_t items() const;
};

struct BatchOrder {
  int64_t step = 1;  // from 1
  int64_t size = 1;
  bool shuffle = true;
  uint64_t seed = 1;
};

// The samples of one batch. Each epoch is a permutation; shuffled text is random windows. [main
// thread]
std::vector<Pick> batch_picks(const Samples& samples, const BatchOrder& order);

}  // namespace orrery
