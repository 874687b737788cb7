// SPDX-License-Identifier: Apache-2.0
//
// Which samples make up a batch. A batch is a pure function of (seed, step), so that a run goes on
// at any step without a position of its own to save, and no rank depends on another.
#pragma once

#include <functional>
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

// What becomes of the samples at the end of an epoch that do not fill a batch: the next epoch's
// first join them, they are a batch of their own, or they are left out.
enum class Rest { joined, own_batch, dropped };

struct BatchOrder {
  int64_t step = 1;  // from 1
  int64_t size = 1;
  bool shuffle = true;
  uint64_t seed = 1;
  Rest rest = Rest::joined;
  // The samples of an epoch, from 0, in their order, instead of all of them: `length` in each.
  std::function<const std::vector<int64_t>&(int64_t epoch)> listed = {};
  int64_t length = 0;

  // How many samples an epoch has.
  int64_t items(const Samples& samples) const { return listed ? length : samples.items(); }
  // The batches of an epoch of so many samples. REQUIRES: rest is not joined.
  int64_t batches(int64_t items) const {
    return rest == Rest::own_batch ? (items + size - 1) / size : items / size;
  }
  // The epoch, from 0, of the batch's first sample.
  int64_t epoch(int64_t items) const {
    return rest == Rest::joined ? (step - 1) * size / items : (step - 1) / batches(items);
  }
};

// The samples of one batch. Each epoch is a permutation; shuffled text is random windows. [main
// thread]
std::vector<Pick> batch_picks(const Samples& samples, const BatchOrder& order);

}  // namespace orrery
