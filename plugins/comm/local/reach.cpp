// SPDX-License-Identifier: Apache-2.0
//
// What lies in registered memory: every rank's part is mapped here.
#include <algorithm>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"

namespace local {

Place Comm::place_of(const orr_buffer& b) const {
  if (!b.memory || b.memory->tier != ORR_TIER_COMM) return {};
  for (const auto& region : family_->regions)
    if (&region->memory == b.memory && std::all_of(world_of_.begin(), world_of_.end(), [&](int w) {
          return region->base[w] != nullptr;
        }))
      return {region->id, b.offset};
  return {};
}

char* Comm::peer_address(const Place& place, int peer) const {
  for (const auto& region : family_->regions)
    if (region->id == place.region) return region->base[world_of_[peer]] + place.offset;
  throw orr::Error(ORR_FAILED, "a peer names communication memory that is not known here");
}

}  // namespace local
