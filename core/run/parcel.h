// SPDX-License-Identifier: Apache-2.0
//
// Several states as the bytes of one message: one after another, without gaps.
#pragma once

#include <cstddef>

#include "lower/serve.h"

namespace orrery {

class Parcel {
 public:
  Parcel() = default;
  explicit Parcel(StateList states) : states_(std::move(states)) {}

  size_t bytes() const;
  // REQUIRES: the states have memory, and are whole here; the other end has bytes().
  void pack(std::byte* to) const;
  void unpack(const std::byte* from) const;
  const StateList& states() const { return states_; }

 private:
  StateList states_;
};

}  // namespace orrery
