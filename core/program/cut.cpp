// SPDX-License-Identifier: Apache-2.0
#include "program/cut.h"

#include <algorithm>

namespace orrery {

bool Cut::is_even(int ranks) const {
  return std::all_of(segments.begin(), segments.end(), [&](int64_t n) { return n % ranks == 0; });
}

Type held(const Type& whole, const Cut& cut, const Member& me) {
  Part part;
  if (cut.kind == Cut::parts && me.ranks > 1) part.cut(cut.dim, ranges_of(cut, me));
  return part.type(whole);
}

Part::Ranges ranges_of(const Cut& cut, const Member& me) {
  Part::Ranges ranges;
  int64_t at = 0;
  for (int64_t n : cut.segments) {
    ranges.emplace_back(at + me.begin(n), at + me.end(n));
    at += n;
  }
  return ranges;
}

}  // namespace orrery
