// SPDX-License-Identifier: Apache-2.0
//
// Bytes that peers fetch from where they are, or store where they are wanted: in registered memory,
// every rank's part of which is mapped here, or in a rank's own, from and to which the kernel
// copies (process_vm_readv, process_vm_writev) where it lets ranks do so.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
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

// Of what lies at `data`, which is the buffer's unless that is empty.
Place Comm::source_of(const orr_buffer& b, const void* data) const {
  const Place place = place_of(b);
  if (place.region != 0 || !family_->attach) return place;
  return {Place::own_memory, reinterpret_cast<uint64_t>(data)};
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

void Comm::fetch(void* to, const Place& place, int peer, uint64_t bytes) {
  if (place.registered())
    take(to, peer_address(place, peer), bytes, bytes);
  else if (!copy_own(process_vm_readv, peer, place.offset, to, bytes))
    blame_copy("read", peer, bytes);
}

// REQUIRES: the peer leaves the place alone until this rank's next step.
void Comm::store(const Place& place, int peer, const void* from, uint64_t bytes) {
  if (place.registered())
    put(peer_address(place, peer), from, bytes);
  else if (!copy_own(process_vm_writev, peer, place.offset, const_cast<void*>(from), bytes))
    blame_copy("write", peer, bytes);
}

void Comm::blame_copy(const char* what, int peer, uint64_t bytes) {
  const int error = errno, other = world_of_[peer];
  family_->check_alive();
  if (has_ended(family_->boot, other)) family_->die_of(other, current_);
  family_->die(ORR_FAILED, "rank " + std::to_string(world_of_[rank_]) + " cannot " + what + " " +
                               std::to_string(bytes) + " bytes of rank " + std::to_string(other) +
                               ": " + std::strerror(error) + here());
}

// Bytes of a peer's operand at a time: so many that the kernel's call for them is cheap beside what
// it copies, and no more, for pieces are to be folded and delivered while a cache has them.
int64_t Comm::choose_piece(int peer, uint64_t address) const {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t least = 256 << 10, most = 1 << 20;
  constexpr int64_t bytes_for_each_ns = 768;  // `most` from 1.4 us on
  auto cost = Clock::duration::max();
  for (int i = 0; i < 8; ++i) {  // the least: a rank may lose its CPU in between
    int64_t word = 0;
    const auto begin = Clock::now();
    copy_own(process_vm_readv, peer, address, &word, sizeof word);
    cost = std::min(cost, Clock::now() - begin);
  }
  const int64_t ns = std::chrono::nanoseconds(cost).count();
  return std::clamp(static_cast<int64_t>(std::bit_floor<uint64_t>(bytes_for_each_ns * ns)), least,
                    most);
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
  if (can) family_->piece_bytes = choose_piece(next, place);
  const auto all = gather_words(can, "forming the world");
  return std::all_of(all.begin(), all.end(), [](int64_t one) { return one != 0; });
}

}  // namespace local
