// SPDX-License-Identifier: Apache-2.0
//
// Being there, and memory that peers read in place.
#include "comm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

namespace local {
namespace {

constexpr int madv_collapse = 25;

}  // namespace

Comm::Comm(std::shared_ptr<Family> family, Segment segment, std::vector<int> world_of, int rank,
           uint64_t id)
    : Group(std::move(family), std::move(world_of), rank, id),
      segment_(std::move(segment)),
      streams_(size_) {
  Member& me = segment_.member(rank_);
  me.process = getpid();
  CPU_ZERO(&me.cpus);
  sched_getaffinity(0, sizeof me.cpus, &me.cpus);
  step(0, false, nullptr, 0);
  for (int r = 0; r < size_; ++r) {
    cpu_set_t both;
    CPU_AND(&both, &me.cpus, &segment_.member(r).cpus);
    far_[r] = CPU_COUNT(&both) == 0;
  }
  segment_.mapping().close_card();
}

bool Comm::has_own_cpus() const {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int r = 0; r < size_; ++r) CPU_OR(&all, &all, &segment_.member(r).cpus);
  return CPU_COUNT(&all) >= size_;
}

// Registered memory is a stride for each rank, shared memory one for all. Each rank places pages of
// its part near itself, before anybody writes. Parts that lie a multiple of 256 MB from each other,
// as those of eight ranks would at strides of 32 MB, are slow to sum: measured on a Zen 4, whose
// first cache seems to take their lines for one another.
orr_memory* Comm::allocate(uint64_t bytes, bool shared) {
  constexpr uint64_t huge = huge_page, avoided = 32 << 20;
  check_equal(bytes);
  auto region = std::make_unique<Region>();
  region->id = shared::hash(&id_, sizeof id_, ++allocations_);
  const uint64_t unit = bytes >= huge ? huge : 4096, strides = shared ? 1 : size_;
  region->stride = std::max(unit, (bytes + unit - 1) / unit * unit);
  if (region->stride % avoided == 0) region->stride += unit;
  int64_t descriptor = 0;
  if (rank_ == 0) {
    region->mapping = Mapping::create(region->stride * strides);
    descriptor = region->mapping.card();
  }
  const auto cards = gather_words(descriptor, "allocate");
  if (rank_ != 0) region->mapping = family_->open(cards[0], world_of_[0]);
  char* const base = region->mapping.base();
  region->base.assign(family_->boot.world_size, nullptr);
  for (int r = 0; r < size_; ++r)
    region->base[world_of_[r]] = base + (shared ? 0 : r * region->stride);
  const uint64_t units = region->stride * strides / unit;
  const auto cut = [&](int r) { return units * r / size_ * unit; };
  std::memset(base + cut(rank_), 0, cut(rank_ + 1) - cut(rank_));
  gather_words(0, "allocate");
  region->mapping.close_card();
  char* const mine = region->base[world_of_[rank_]];
  if (bytes >= huge) madvise(mine, region->stride, madv_collapse);
  region->memory.size = sizeof region->memory;
  region->memory.tier = ORR_TIER_COMM;
  region->memory.bytes = bytes;
  region->memory.host = region->memory.native = mine;
  orr::copy_text(region->memory.native_kind, "host");
  region->memory.owner = region.get();
  family_->regions.push_back(std::move(region));
  return &family_->regions.back()->memory;
}

}  // namespace local
