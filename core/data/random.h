// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of datasets: functions of what they are for, so that they depend on no rank.
#pragma once

#include <orrery/ops.h>

#include <cstdint>

namespace orrery {

// 64 random bits for one purpose: Philox of (seed, purpose, epoch, element).
inline uint64_t random_bits(uint64_t seed, uint32_t purpose, int64_t epoch, uint64_t element) {
  const auto high = orr_philox(seed, purpose, static_cast<uint32_t>(epoch), 2 * element);
  const auto low = orr_philox(seed, purpose, static_cast<uint32_t>(epoch), 2 * element + 1);
  return (static_cast<uint64_t>(high) << 32) | low;
}

}  // namespace orrery
