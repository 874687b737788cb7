// SPDX-License-Identifier: Apache-2.0
//
// Draws which weights of sixteen queries dropout keeps, key by key.
#pragma once

#include <orrery/sdk/attention.hpp>

#include "kernel.h"
#include "philox.h"

namespace orr_cpu::ORR_ISA {

// The dropout of one launch.
struct Dropout {
  // `scalars`: seed, step, base; ignored without dropout.
  Dropout(const orr::AttentionDropout& of, const orr_buffer* scalars) : of(of) {
    if (!of.on()) return;
    seed = uint64_t(*host<int64_t>(scalars[0])), step = uint32_t(*host<int64_t>(scalars[1]));
    base = uint64_t(*host<int64_t>(scalars[2]));
  }

  orr::AttentionDropout of;
  uint64_t seed = 0, base = 0;
  uint32_t step = 0;
};

// Draws for the keys from `first` on, for sixteen queries from `row` on (AttentionDropout::row).
class Draws {
 public:
  Draws(const Dropout& d, int64_t row, int64_t keys, int64_t first) : d_(d) {
    for (int i = 0; i < kLanes; ++i) element_[i] = d.base + uint64_t((row + i) * keys + first);
    together_ = keys % 4 == 0;  // then all lanes use the same word of their counters
  }

  // The lanes that keep their weight of the next key.
  ORR_INLINE m16 next() {
    const int at = int(element_[0] & 3);
    if (at == 0 || !together_ || fresh_) draw();
    const v16f u = together_ ? uniform(word_[at]) : chosen();
    for (uint64_t& e : element_) ++e;
    return u >= splat(d_.of.rate());
  }

 private:
  void draw() {
    alignas(64) uint32_t low[kLanes], high[kLanes];
    for (int i = 0; i < kLanes; ++i)
      low[i] = uint32_t(element_[i] >> 2), high[i] = uint32_t(element_[i] >> 34);
    philox(d_.seed, d_.of.rng_id(), d_.step, load_int(low), load_int(high), word_);
    fresh_ = false;
  }
  v16f chosen() const {
    alignas(64) uint32_t at[kLanes];
    for (int i = 0; i < kLanes; ++i) at[i] = uint32_t(element_[i] & 3);
    const v16i w = load_int(at);
    v16i x = word_[0];
    for (int k = 1; k < 4; ++k) x = select(w == splat_int(k), word_[k], x);
    return uniform(x);
  }

  const Dropout& d_;
  uint64_t element_[kLanes];
  v16i word_[4];
  bool together_, fresh_ = true;
};

}  // namespace orr_cpu::ORR_ISA
