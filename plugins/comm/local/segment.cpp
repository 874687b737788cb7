// SPDX-License-Identifier: Apache-2.0
#include "segment.h"

namespace local {

uint64_t Segment::bytes(int ranks) {
  Segment shape;
  shape.ranks_ = ranks;
  return page(shape.ring_at() + uint64_t(ranks) * ranks * sizeof(Ring));
}

}  // namespace local
