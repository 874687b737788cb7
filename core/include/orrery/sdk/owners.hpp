// SPDX-License-Identifier: Apache-2.0
//
// Deals whole tensors to owners: the largest first, each to the owner that has the fewest bytes.
// The tensors of an owner are grouped in units of about equal size that travel together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace orr {

struct Owned {
  int32_t owner = 0, unit = 0;
};

// The owner and unit of each tensor. Units are numbered from 0, over all owners.
inline std::vector<Owned> deal_to_owners(const std::vector<int64_t>& bytes, int32_t owners,
                                         int64_t unit_bytes) {
  struct Owner {
    int64_t bytes = 0, in_unit = 0;
    int32_t unit = 0;
  };
  std::vector<Owner> have(static_cast<size_t>(owners));
  int32_t units = 0;
  for (Owner& o : have) o.unit = units++;
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<Owned> dealt(bytes.size());
  for (size_t i : order) {
    auto o = std::min_element(have.begin(), have.end(),
                              [](auto& a, auto& b) { return a.bytes < b.bytes; });
    if (o->in_unit >= unit_bytes) o->in_unit = 0, o->unit = units++;
    dealt[i] = {static_cast<int32_t>(o - have.begin()), o->unit};
    o->bytes += bytes[i], o->in_unit += bytes[i];
  }
  return dealt;
}

}  // namespace orr
