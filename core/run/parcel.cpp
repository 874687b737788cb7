// SPDX-License-Identifier: Apache-2.0
#include "run/parcel.h"

#include <cstring>

#include "run/states.h"

namespace orrery {

size_t Parcel::bytes() const {
  size_t sum = 0;
  for (auto& s : states_) sum += s->type.bytes();
  return sum;
}

void Parcel::pack(std::byte* to) const {
  for (auto& s : states_) {
    std::memcpy(to, state_address(*s), s->type.bytes());
    to += s->type.bytes();
  }
}

void Parcel::unpack(const std::byte* from) const {
  for (auto& s : states_) {
    std::memcpy(state_address(*s), from, s->type.bytes());
    from += s->type.bytes();
  }
}

}  // namespace orrery
