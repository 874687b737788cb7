// SPDX-License-Identifier: Apache-2.0
//
// Bytes that stay in place until peers fetch them: in registered memory, every rank's part of which
// is mapped here, or in their sender's own, from which the kernel copies (process_vm_readv) where
// it lets ranks read each other.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "slots.h"

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

// Of `bytes` at `data`, which are the buffer's unless it is empty.
Place Comm::source_of(const orr_buffer& b, const void* data, uint64_t bytes) const {
  constexpr uint64_t most_of_small_pages = 4 << 20;
  const Place place = place_of(b);
  if (place.region != 0 || !family_->attach) return place;
  if (!family_->huge_pages && bytes >= most_of_small_pages) return place;
  return {Place::own_memory, reinterpret_cast<uint64_t>(data)};
}

char* Comm::peer_address(const Place& place, int peer) const {
  for (const auto& region : family_->regions)
    if (region->id == place.region) return region->base[world_of_[peer]] + place.offset;
  throw orr::Error(ORR_FAILED, "a peer names communication memory that is not known here");
}

bool Comm::read_own(int peer, uint64_t address, void* to, uint64_t bytes) const {
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    const iovec here{at, bytes}, there{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = process_vm_readv(segment_.member(peer).process, &here, 1, &there, 1, 0);
    if (n <= 0) return false;
    at += n;
    address += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

void Comm::fetch(void* to, const Place& place, int peer, uint64_t bytes) {
  if (place.registered()) {
    take(to, peer_address(place, peer), bytes, bytes);
    return;
  }
  if (read_own(peer, place.offset, to, bytes)) return;
  const int error = errno;
  family_->check_alive();
  if (has_ended(family_->boot, world_of_[peer])) family_->die_of(world_of_[peer], current_);
  family_->die(ORR_FAILED, "rank " + std::to_string(world_of_[rank_]) + " cannot read " +
                               std::to_string(bytes) + " bytes of rank " +
                               std::to_string(world_of_[peer]) + ": " + std::strerror(error) +
                               here());
}

// Each tries a word of its neighbour.
bool Comm::can_attach() {
  const int64_t word = static_cast<int64_t>(id_) ^ rank_;
  const auto words = gather_words(word, "forming the world");
  const auto places = gather_words(reinterpret_cast<int64_t>(&word), "forming the world");
  const int next = (rank_ + 1) % size_;
  int64_t seen = 0;
  const bool can = read_own(next, static_cast<uint64_t>(places[next]), &seen, sizeof seen) &&
                   seen == words[next];
  const auto all = gather_words(can, "forming the world");
  return std::all_of(all.begin(), all.end(), [](int64_t one) { return one != 0; });
}

}  // namespace local
