// SPDX-License-Identifier: Apache-2.0
#include "lua/own_order.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "lua/drawn.h"

namespace orrery::lua {
namespace {

constexpr uint32_t kOwnOrder = 0x5a3c91e7;

struct Lists {
  Function order;
  int64_t items;
  uint64_t seed;
  int64_t epoch = -1;  // that `list` is of
  std::vector<int64_t> list;
  size_t length = 0;  // of all lists; 0: there was none

  std::vector<int64_t> made(int64_t wanted) const {
    lua_State* L = order.state();
    const StackTop top(L);
    order.push();
    lua_pushinteger(L, wanted + 1);
    push_random(L, seed, kOwnOrder, wanted);
    protected_call(L, 2, 1);
    if (!lua_istable(L, top.at + 1))
      fail(ORR_INVALID, "batches: order returned {}, expected a list of samples",
           describe(L, top.at + 1));
    return to_integers(L, top.at + 1, "batches: order: sample");
  }

  const std::vector<int64_t>& of(int64_t wanted) {
    if (wanted == epoch) return list;
    std::vector<int64_t> found = made(wanted);
    for (int64_t& sample : found) {
      if (sample < 1 || sample > items)
        fail(ORR_INVALID, "batches: order has sample {} in epoch {}: samples are 1 to {}", sample,
             wanted + 1, items);
      --sample;
    }
    if (found.empty()) fail(ORR_INVALID, "batches: order has no sample in epoch {}", wanted + 1);
    if (length && found.size() != length)
      fail(ORR_INVALID,
           "batches: order has {} samples in epoch {} and {} in another: give as many "
           "in each",
           found.size(), wanted + 1, length);
    list = std::move(found), length = list.size(), epoch = wanted;
    return list;
  }
};

}  // namespace

std::function<const std::vector<int64_t>&(int64_t epoch)> own_order(Function order, int64_t items,
                                                                    uint64_t seed) {
  auto lists = std::make_shared<Lists>(Lists{std::move(order), items, seed, -1, {}, 0});
  return [lists](int64_t epoch) -> const std::vector<int64_t>& { return lists->of(epoch); };
}

}  // namespace orrery::lua
