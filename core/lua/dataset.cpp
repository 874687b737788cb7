// SPDX-License-Identifier: Apache-2.0
#include "lua/dataset.h"

#include <orrery/ops.h>

#include <cstring>
#include <numeric>

#include "base/error.h"
#include "store/digest.h"

namespace orrery::lua {
namespace {

// Random numbers for one purpose: philox of (seed, purpose, epoch, element).
uint64_t draw(uint64_t seed, uint32_t purpose, int64_t epoch, uint64_t element, uint64_t below) {
  const uint64_t high = orr_philox(seed, purpose, static_cast<uint32_t>(epoch), 2 * element);
  const uint64_t low = orr_philox(seed, purpose, static_cast<uint32_t>(epoch), 2 * element + 1);
  return ((high << 32) | low) % below;
}

constexpr uint32_t kWindows = 0x7e57da7a, kOrder = 0x0bdeba7c;

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
    std::swap(order[i - 1], order[draw(seed, kOrder, epoch, i, i)]);
  }
  of_seed = seed;
  of_epoch = epoch;
  return order;
}

void load_rows(const Column& column, const std::vector<int64_t>& samples, int64_t begin,
               int64_t end, std::byte* to) {
  const auto bytes = static_cast<size_t>(column.row.bytes());
  for (int64_t i = begin; i < end; ++i, to += bytes) {
    const int64_t at = column.offset + samples[static_cast<size_t>(i)] * column.stride;
    std::memcpy(to, column.bytes->data() + at, bytes);
  }
}

}  // namespace

int64_t Dataset::items() const {
  const int64_t windows = (samples + window - 1) / window;
  return (windows - shard + shards - 1) / shards;
}

std::vector<int64_t> batch_samples(const Dataset& data, const BatchOrder& order) {
  std::vector<int64_t> chosen(static_cast<size_t>(order.size));
  const int64_t items = data.items();
  for (int64_t i = 0; i < order.size; ++i) {
    const int64_t ordinal = (order.step - 1) * order.size + i;
    int64_t& sample = chosen[static_cast<size_t>(i)];
    if (order.shuffle && data.window > 1) {
      const auto element = static_cast<uint64_t>(ordinal * data.shards + data.shard);
      sample = data.begin + static_cast<int64_t>(draw(order.seed, kWindows, 0, element,
                                                      static_cast<uint64_t>(data.samples)));
      continue;
    }
    int64_t item = ordinal % items;
    if (order.shuffle)
      item = permutation(order.seed, ordinal / items, items)[static_cast<size_t>(item)];
    sample = data.begin + (item * data.shards + data.shard) * data.window;
  }
  return chosen;
}

BatchFields make_batch(const std::shared_ptr<const Dataset>& data, const BatchOrder& order) {
  auto samples = std::make_shared<const std::vector<int64_t>>(batch_samples(*data, order));
  Digest identity;
  identity.add(samples->data(), samples->size() * sizeof(int64_t));
  BatchFields batch;
  for (const Column& column : data->columns) {
    Type type = column.row;
    type.dims.insert(type.dims.begin(), order.size);
    batch[column.name] = {type,
                          [data, samples, &column](int64_t begin, int64_t end, std::byte* to) {
                            load_rows(column, *samples, begin, end, to);
                          },
                          identity.number()};
  }
  return batch;
}

}  // namespace orrery::lua
