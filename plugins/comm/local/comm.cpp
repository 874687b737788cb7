// SPDX-License-Identifier: Apache-2.0
//
// Forming: the world over the launcher's store, children and registered memory over their parent.
#include "comm.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

namespace local {
namespace {

constexpr int madv_collapse = 25;

std::vector<int> count_up(int n) {
  std::vector<int> v(n);
  for (int i = 0; i < n; ++i) v[i] = i;
  return v;
}

}  // namespace

Comm::Comm(std::shared_ptr<Family> family, Segment segment, std::vector<int> world_of, int rank,
           uint64_t id)
    : family_(std::move(family)), segment_(std::move(segment)), world_of_(std::move(world_of)),
      rank_(rank), size_(static_cast<int>(world_of_.size())), id_(id), inbound_(size_) {}

Comm::~Comm() = default;

// Rank 0 makes the segment and keeps its card open until all have published their first step.
Segment Comm::meet(const orr_comm_boot& boot) {
  const char* key = "comm.local/segment";
  if (boot.rank == 0) {
    Segment made(Mapping::create(Segment::bytes(boot.world_size)), boot.world_size);
    const int64_t card = made.mapping().card();
    orr::check(boot.put(boot.store, key, &card, sizeof card));
    return made;
  }
  int64_t card = 0;
  uint64_t bytes = 0;
  orr::check(boot.get(boot.store, key, &card, sizeof card, &bytes, boot.deadline_ns));
  Mapping mapping = Mapping::open(card);
  if (mapping.bytes() != Segment::bytes(boot.world_size))
    throw orr::Error(ORR_FAILED, "rank 0 forms a world of another size or version of comm 'local'");
  return Segment(std::move(mapping), boot.world_size);
}

void Comm::introduce() {
  Member& me = segment_.member(rank_);
  me.world_rank = world_of_[rank_];
  me.waits_for.store(-1);
  CPU_ZERO(&me.cpus);
  sched_getaffinity(0, sizeof me.cpus, &me.cpus);
  publish();
  await_step();
}

std::unique_ptr<Comm> Comm::form_world(const orr_comm_boot& boot) {
  if (boot.world_size > max_ranks || boot.local_size != boot.world_size)
    throw orr::Error(ORR_UNAVAILABLE,
                     "comm 'local' joins up to " + std::to_string(max_ranks) +
                         " ranks of one host, not " + std::to_string(boot.world_size) + " with " +
                         std::to_string(boot.local_size) + " on this one");
  auto family = std::make_shared<Family>();
  family->boot = boot;
  family->job = boot.job ? boot.job : "";
  family->boot.job = family->job.c_str();
  family->world = meet(boot);
  std::unique_ptr<Comm> comm(
      new Comm(family, family->world, count_up(boot.world_size), boot.rank, 1));
  comm->introduce();
  family->world.mapping().close_card();
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int r = 0; r < boot.world_size; ++r)
    CPU_OR(&all, &all, &comm->segment_.member(r).cpus);
  family->spin = CPU_COUNT(&all) >= boot.world_size;
  return comm;
}

std::unique_ptr<Comm> Comm::split(int32_t color, int32_t key) {
  const uint64_t birth = ++children_;
  const auto words = gather_words((int64_t{color} << 32) | static_cast<uint32_t>(key), "split");
  std::vector<int> members;
  for (int r = 0; r < size_; ++r)
    if (color >= 0 && words[r] >> 32 == color) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return static_cast<int32_t>(words[a]) < static_cast<int32_t>(words[b]);
  });
  const bool maker = !members.empty() && members[0] == rank_;
  const int n = static_cast<int>(members.size());
  Segment segment;
  int64_t descriptor = 0;
  if (maker) {
    segment = Segment(Mapping::create(Segment::bytes(n)), n);
    descriptor = segment.mapping().card();
  }
  const auto cards = gather_words(descriptor, "split");
  if (!maker && n > 0)
    segment = Segment(Mapping::open(cards[members[0]]), n);
  gather_words(0, "split");  // all have opened what they need
  if (n == 0) return nullptr;
  segment.mapping().close_card();
  std::vector<int> world_of;
  for (int m : members) world_of.push_back(world_of_[m]);
  const int rank = static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
  const uint64_t id = shared::hash(&color, sizeof color, id_ * 1000003 + birth);
  std::unique_ptr<Comm> child(new Comm(family_, std::move(segment), world_of, rank, id));
  child->introduce();
  return child;
}

orr_memory* Comm::allocate(uint64_t bytes) {
  constexpr uint64_t huge = 2 << 20;
  auto region = std::make_unique<Region>();
  region->id = shared::hash(&id_, sizeof id_, ++allocations_);
  const uint64_t unit = bytes >= huge ? huge : 4096;
  region->stride = std::max(unit, (bytes + unit - 1) / unit * unit);
  int64_t descriptor = 0;
  if (rank_ == 0) {
    region->mapping = Mapping::create(region->stride * size_);
    descriptor = region->mapping.card();
  }
  const auto cards = gather_words(descriptor, "allocate");
  if (rank_ != 0) region->mapping = Mapping::open(cards[0]);
  const auto sizes = gather_words(static_cast<int64_t>(bytes), "allocate");
  region->mapping.close_card();
  for (int r = 0; r < size_; ++r)
    if (sizes[r] != sizes[0])
      throw orr::Error(ORR_INVALID, "rank 0 allocates " + std::to_string(sizes[0]) +
                                        " bytes of communication memory, rank " +
                                        std::to_string(world_of_[r]) + " " + std::to_string(sizes[r]));
  region->base.assign(family_->boot.world_size, nullptr);
  for (int r = 0; r < size_; ++r)
    region->base[world_of_[r]] = region->mapping.base() + r * region->stride;
  char* mine = region->base[world_of_[rank_]];
  std::memset(mine, 0, region->stride);  // places the pages near their rank
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

void Comm::free(orr_memory* memory) {
  const auto own = [&](const auto& r) { return &r->memory == memory; };
  auto found = std::find_if(family_->regions.begin(), family_->regions.end(), own);
  if (found != family_->regions.end()) family_->regions.erase(found);
}

}  // namespace local
