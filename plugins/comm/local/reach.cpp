// SPDX-License-Identifier: Apache-2.0
//
// Bytes that peers fetch from where they are, or store where they are wanted: in registered memory,
// every rank's part of which is mapped here, or in a rank's own, from and to which the kernel
// copies (process_vm_readv, process_vm_writev) where it lets ranks do so.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "slots.h"

namespace local {

// `attach`: in a rank's own memory, too, where that is allowed.
Place Comm::place_of(const void* data, bool attach) const {
  const auto at = reinterpret_cast<uint64_t>(data);
  for (const auto& region : family_->regions) {
    const auto begin = reinterpret_cast<uint64_t>(region->memory.host);
    const bool reached = std::all_of(world_of_.begin(), world_of_.end(),
                                     [&](int w) { return region->base[w] != nullptr; });
    if (at >= begin && at - begin < region->memory.bytes && reached)
      return {region->id, at - begin};
  }
  return attach && family_->attach ? Place{Place::own_memory, at} : Place{};
}

char* Comm::peer_address(const Place& place, int peer) const {
  for (const auto& region : family_->regions)
    if (region->id == place.region) return region->base[world_of_[peer]] + place.offset;
  throw orr::Error(ORR_FAILED, "a peer names communication memory that is not known here");
}

// Between here and what lies at `address` in the peer's own memory. False, and errno, when the
// kernel refuses.
bool Comm::copy_own(Copy copy, int peer, uint64_t address, void* here, uint64_t bytes) const {
  for (char* at = static_cast<char*>(here); bytes > 0;) {
    const iovec ours{at, bytes}, theirs{reinterpret_cast<void*>(address), bytes};
    const ssize_t n = copy(segment_.member(peer).process, &ours, 1, &theirs, 1, 0);
    if (n <= 0) return false;
    at += n;
    address += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

// Where the bytes can be read here: in place, or in `scratch`, which they are copied to.
const char* Comm::reach(const Place& place, int peer, uint64_t bytes, char* scratch) {
  if (place.registered()) return peer_address(place, peer);
  if (!copy_own(process_vm_readv, peer, place.offset, scratch, bytes))
    blame_copy("read", peer, bytes);
  return scratch;
}

void Comm::fetch(const Place& place, int peer, void* to, uint64_t bytes) {
  const char* const from = reach(place, peer, bytes, static_cast<char*>(to));
  if (from != to) take(to, from, bytes, bytes);
}

// REQUIRES: the peer leaves the place alone until this rank's next step.
void Comm::store(const Place& place, int peer, const void* from, uint64_t bytes) {
  if (!copy_own(process_vm_writev, peer, place.offset, const_cast<void*>(from), bytes))
    blame_copy("write", peer, bytes);
}

void Comm::blame_copy(const char* what, int peer, uint64_t bytes) {
  const int error = errno, other = world_of_[peer];
  family_->check_alive();
  if (family_->has_ended(other)) family_->die_of(other, current_);
  family_->die(ORR_FAILED, "rank " + std::to_string(world_of_[rank_]) + " cannot " + what + " " +
                               std::to_string(bytes) + " bytes of rank " + std::to_string(other) +
                               ": " + std::strerror(error) + shared::in_operation(current_));
}

// Each tries a word of its neighbour.
bool Comm::can_attach() {
  int64_t word = static_cast<int64_t>(id_) ^ rank_;
  const auto words = gather_words(word, "forming the world");
  const auto places = gather_words(reinterpret_cast<int64_t>(&word), "forming the world");
  const int next = (rank_ + 1) % size_;
  int64_t seen = 0;
  const uint64_t place = static_cast<uint64_t>(places[next]);
  const bool can = copy_own(process_vm_readv, next, place, &seen, sizeof seen) &&
                   seen == words[next] &&
                   copy_own(process_vm_writev, next, place, &seen, sizeof seen);
  const auto all = gather_words(can, "forming the world");
  return std::all_of(all.begin(), all.end(), [](int64_t one) { return one != 0; });
}

}  // namespace local
