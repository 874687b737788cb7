// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/random.h"

namespace orrery {
namespace {

constexpr uint32_t kWindows = 0x7e57da7a, kOrder = 0x0bdeba7c, kDraw = 0xa0c3e27d;

// The order of an epoch; kept for the next batch.
const std::vector<int64_t>& permutation(uint64_t seed, int64_t epoch, int64_t count) {
  static std::vector<int64_t> order;
  static uint64_t of_seed = 0;
  static int64_t of_epoch = -1;
  if (of_seed == seed && of_epoch == epoch && static_cast<int64_t>(order.size()) == count) {
    return order;
  }
  order.resize(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_bits(seed, kOrder, epoch, i) % i]);
  }
  of_seed = seed;
  of_epoch = epoch;
  return order;
}

// The first of the batch's samples and one behind the last, counted over all epochs.
std::pair<int64_t, int64_t> ordinals(const BatchOrder& order, int64_t items) {
  const int64_t whole = (order.step - 1) * order.size;
  if (order.rest == Rest::joined) return {whole, whole + order.size};
  const int64_t epoch = order.epoch(items), begin = epoch * items,
                first = begin + (order.step - 1 - epoch * order.batches(items)) * order.size;
  return {first, std::min(first + order.size, begin + items)};
}

}  // namespace

int64_t Samples::items() const {
  const int64_t stride = std::max<int64_t>(data->window(), 1);
  const int64_t windows = (data->samples() + stride - 1) / stride;
  return (windows - shard + shards - 1) / shards;
}

std::vector<Pick> batch_picks(const Samples& samples, const BatchOrder& order) {
  std::vector<Pick> picks;
  picks.reserve(static_cast<size_t>(order.size));
  const int64_t items = order.items(samples), window = samples.data->window();
  const auto [first, end] = ordinals(order, items);
  for (int64_t ordinal = first; ordinal < end; ++ordinal) {
    const int64_t epoch = ordinal / items;
    int64_t sample = 0;
    // A sample that is listed twice has two draws.
    auto drawn = static_cast<uint64_t>(ordinal % items);
    if (order.listed) {
      const int64_t item = order.listed(epoch)[static_cast<size_t>(drawn)];
      sample = (item * samples.shards + samples.shard) * std::max<int64_t>(window, 1);
    } else if (order.shuffle && window) {
      const auto element = static_cast<uint64_t>(ordinal * samples.shards + samples.shard);
      sample = static_cast<int64_t>(random_bits(order.seed, kWindows, 0, element) %
                                    static_cast<uint64_t>(samples.data->samples()));
    } else {
      int64_t item = ordinal % items;
      if (order.shuffle) item = permutation(order.seed, epoch, items)[static_cast<size_t>(item)];
      sample = (item * samples.shards + samples.shard) * std::max<int64_t>(window, 1);
    }
    if (!order.listed) drawn = static_cast<uint64_t>(sample);
    picks.push_back({sample, random_bits(order.seed, kDraw, epoch, drawn)});
  }
  return picks;
}

}  // namespace orrery
