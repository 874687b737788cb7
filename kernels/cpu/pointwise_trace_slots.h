// SPDX-License-Identifier: Apache-2.0
//
// What the slots of a compiled expression hold while it is traced: nodes. A value of 8-byte
// elements takes two nodes, for the lower and the upper half of the elements that one turn of the
// loop computes. Included only by pointwise_trace_memory.h.
#pragma once

#include <orrery/kernel.h>

#include "pointwise_functions.h"

namespace orr_cpu::ORR_ISA {

// Doubles or int64.
struct v16w {
  int32_t low, high;
};

struct Slots {
  explicit Slots(const pointwise::Compiled& c)
      : place_(size_t(c.slots)), low_(size_t(c.slots), -1), high_(size_t(c.slots), -1) {
    for (const auto& w : c.in) place_[size_t(w.slot)] = INPUT;
    for (const auto& w : c.out) place_[size_t(w.slot)] = OUTPUT;
  }

  bool is_output(uint32_t slot) const { return place_[slot] == OUTPUT; }
  bool is_uniform(uint32_t slot) const { return place_[slot] == UNIFORM && low_[slot] < 0; }

  v16f load(uint32_t slot) const {
    if (low_[slot] >= 0) return {low_[slot]};
    return {note(place_[slot] == INPUT ? Node::LOAD : Node::UNIFORM, -1, -1, -1, slot)};
  }
  // Integers of up to 32 bits, which a slot of the block machine holds as int64.
  v16i load_int(uint32_t slot) const {
    if (low_[slot] >= 0) return {low_[slot]};
    return {note(Node::UNIFORM_INT, -1, -1, -1, slot)};
  }
  v16w load_wide(uint32_t slot) const {
    if (low_[slot] >= 0) return {low_[slot], high_[slot]};
    const auto half = [&](int h) {
      const auto kind = place_[slot] == INPUT ? Node::LOAD : Node::UNIFORM;
      return pointwise::note_wide(kind, -1, -1, -1, slot, h);
    };
    const int32_t first = half(0);
    return {first, place_[slot] == INPUT ? half(1) : first};
  }

  void set(uint32_t slot, v16f x) { low_[slot] = x.node; }
  void set(uint32_t slot, v16i x) { low_[slot] = x.node; }
  void set(uint32_t slot, v16w x) { low_[slot] = x.low, high_[slot] = x.high; }

 private:
  enum Place : char { UNIFORM, INPUT, OUTPUT };
  std::vector<Place> place_;         // of a slot's values, unless the body computes them
  std::vector<int32_t> low_, high_;  // the nodes that a slot holds, or -1
};

}  // namespace orr_cpu::ORR_ISA
