// SPDX-License-Identifier: Apache-2.0
//
// What lies in a peer's memory: registered, where it is mapped here too, or private, where the kernel
// copies it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <orrery/sdk/plugin.hpp>

#include "attach.h"
#include "comm.h"

namespace local {

bool Comm::can_attach() {
  constexpr uint64_t sample = 256 << 10;
  admit_siblings();
  const std::vector<char> bytes(sample, 1);
  const auto places = gather_words(reinterpret_cast<int64_t>(bytes.data()), "forming the world");
  bool can = true;
  if (size_ > 1) {
    const int next = (rank_ + 1) % size_;
    can = attaching_pays(segment_.member(next).process, static_cast<uint64_t>(places[next]), sample);
  }
  const auto all = gather_words(can, "forming the world");
  return std::all_of(all.begin(), all.end(), [](int64_t word) { return word != 0; });
}

Place Comm::place_of(const orr_buffer& b) const {
  if (!b.memory) return {};
  if (b.memory->tier == ORR_TIER_COMM)
    for (const auto& region : family_->regions)
      if (&region->memory == b.memory &&
          std::all_of(world_of_.begin(), world_of_.end(), [&](int w) { return region->base[w] != nullptr; }))
        return {region->id, b.offset};
  if (!family_->attach) return {};
  return {Place::private_memory, reinterpret_cast<uint64_t>(orr::data<char>(b))};
}

char* Comm::peer_address(const Place& place, int peer) const {
  for (const auto& region : family_->regions)
    if (region->id == place.region) return region->base[world_of_[peer]] + place.offset;
  throw orr::Error(ORR_FAILED, "a peer names communication memory that is not known here");
}

void Comm::fetch(const Place& from, int peer, uint64_t offset, void* to, uint64_t bytes) {
  if (from.path() == path_direct) std::memcpy(to, peer_address(from, peer) + offset, bytes);
  else if (int error = attached_read(segment_.member(peer).process, from.offset + offset, to, bytes))
    cannot_reach(peer, error);
}

void Comm::deliver(const Place& to, int peer, uint64_t offset, const void* from, uint64_t bytes) {
  if (to.path() == path_direct) std::memcpy(peer_address(to, peer) + offset, from, bytes);
  else if (int error = attached_write(segment_.member(peer).process, to.offset + offset, from, bytes))
    cannot_reach(peer, error);
}

// A peer that has left for a reason has said it before.
void Comm::cannot_reach(int peer, int error) {
  family_->check_alive();
  const std::string who = "rank " + std::to_string(world_of_[peer]);
  if (error == ESRCH) poison(ORR_RETRY, who + " died" + here());
  else poison(ORR_FAILED, "the memory of " + who + " is out of reach: " + std::strerror(error) + here());
  family_->check_alive();
  throw orr::Error(ORR_FAILED, "the communicator is dead");
}

}  // namespace local
