// SPDX-License-Identifier: Apache-2.0
//
// Forming: the world over the store, children over their parent. Those of a communicator's ranks
// that are on one host share a segment; a communicator that has others, too, is a wide one on top
// of it.
#include <algorithm>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "comm.h"
#include "connect.h"
#include "wide.h"

namespace local {
namespace {

// Of these world ranks, those that are on this rank's host.
std::vector<int> neighbours(const Family& family, const std::vector<int>& ranks) {
  std::vector<int> here;
  for (int w : ranks)
    if (family.host_of[w] == family.host_of[family.boot.rank]) here.push_back(w);
  return here;
}

int index_of(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

// The first rank of a host makes its segment and keeps the card open until all have published their
// first step.
Segment meet(Family& family, const std::vector<int>& here) {
  const orr_comm_boot& boot = family.boot;
  const std::string key = "comm.local/segment/" + std::to_string(here[0]);
  const int n = static_cast<int>(here.size());
  if (boot.rank == here[0]) {
    Segment made(Mapping::create(Segment::bytes(n)), n);
    const int64_t card = made.mapping().card();
    orr::check(boot.put(boot.store, key.c_str(), &card, sizeof card));
    return made;
  }
  int64_t card = 0;
  uint64_t bytes = 0;
  orr::check(boot.get(boot.store, key.c_str(), &card, sizeof card, &bytes, boot.deadline_ns));
  Mapping mapping = family.open(card, here[0]);
  if (mapping.bytes() != Segment::bytes(n))
    throw orr::Error(ORR_FAILED, "rank " + std::to_string(here[0]) +
                                     " forms a world of another size or version of comm 'local'");
  return Segment(std::move(mapping), n);
}

// Nobody may go its way, and end perhaps, while others still look for their connections.
std::unique_ptr<Group> widen(std::shared_ptr<Family> family, std::vector<int> world_of, uint64_t id,
                             std::unique_ptr<Comm> host) {
  if (host->size() == static_cast<int>(world_of.size())) return host;
  std::vector<int> sockets;
  try {
    sockets = connect_all(family->boot, world_of, std::to_string(id));
  } catch (const orr::Error& e) {
    family->die(e.code, e.what());
  }
  const int rank = index_of(world_of, family->boot.rank);
  auto wide = std::make_unique<Wide>(std::move(family), std::move(world_of), rank, id,
                                     std::move(host), std::move(sockets));
  orr_coll c{};
  c.size = sizeof c;
  c.op = ORR_COLL_BARRIER;
  c.name = "forming";
  wide->run(&c, 1);
  return wide;
}

}  // namespace

Group::Group(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id)
    : family_(std::move(family)),
      world_of_(std::move(world_of)),
      rank_(rank),
      size_(static_cast<int>(world_of_.size())),
      id_(id),
      far_(size_, false),
      inbound_(size_),
      placed_(size_, 0) {}

std::unique_ptr<Group> form_world(const orr_comm_boot& boot) {
  if (boot.world_size > max_ranks)
    throw orr::Error(ORR_UNAVAILABLE, "comm 'local' joins up to " + std::to_string(max_ranks) +
                                          " ranks, not " + std::to_string(boot.world_size));
  auto family = std::make_shared<Family>();
  family->boot = boot;
  family->job = boot.job ? boot.job : "";
  family->boot.job = family->job.c_str();
  family->host_of = find_hosts(boot);
  std::vector<int> all(boot.world_size);
  for (int r = 0; r < boot.world_size; ++r) all[r] = r;
  const std::vector<int> here = neighbours(*family, all);
  auto host =
      std::make_unique<Comm>(family, meet(*family, here), here, index_of(here, boot.rank), 1);
  family->spin = host->has_own_cpus();
  family->attach = host->can_attach();
  return widen(family, all, 1, std::move(host));
}

std::unique_ptr<Group> Group::split(int32_t color, int32_t key) {
  const uint64_t birth = ++children_;
  const auto words = gather_words((int64_t{color} << 32) | static_cast<uint32_t>(key), "split");
  std::vector<int> members;
  for (int r = 0; r < size_; ++r)
    if (color >= 0 && words[r] >> 32 == color) members.push_back(r);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return static_cast<int32_t>(words[a]) < static_cast<int32_t>(words[b]);
  });
  for (int& m : members) m = world_of_[m];
  const std::vector<int> here = neighbours(*family_, members);
  const int n = static_cast<int>(here.size()), me = family_->boot.rank;
  Segment segment;
  int64_t card = 0;
  if (n > 0 && here[0] == me) {
    segment = Segment(Mapping::create(Segment::bytes(n)), n);
    card = segment.mapping().card();
  }
  const auto cards = gather_words(card, "split");
  if (n > 0 && here[0] != me)
    segment = Segment(family_->open(cards[index_of(world_of_, here[0])], here[0]), n);
  gather_words(0, "split");  // all have opened what they need
  if (n == 0) return nullptr;
  const uint64_t id = shared::hash(&color, sizeof color, id_ * 1000003 + birth);
  auto host = std::make_unique<Comm>(family_, std::move(segment), here, index_of(here, me), id);
  return widen(family_, members, id, std::move(host));
}

void Group::free(orr_memory* memory) {
  auto& regions = family_->regions;
  const auto own = [&](const auto& r) { return &r->memory == memory; };
  if (auto found = std::find_if(regions.begin(), regions.end(), own); found != regions.end())
    regions.erase(found);
}

// A group's sends and receives start together; its collectives follow in their order.
void Group::run(const orr_coll* ops, int n) {
  family_->check_alive();
  for (int i = 0; i < n; ++i) shared::check(ops[i], rank_, size_, false);
  transfer(ops, n);
  for (int i = 0; i < n; ++i)
    if (!shared::paired(ops[i])) collective(ops[i]);
  current_ = nullptr;
  uint64_t sent = 0;
  for (int i = 0; i < n; ++i) sent += orr::traffic::bytes_sent(ops[i], rank_, size_);
  bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
}

std::vector<int64_t> Group::gather_words(int64_t mine, const char* name) {
  std::vector<int64_t> all(size_), ones(size_, 1);
  orr_memory in{}, out{};
  in.host = &mine;
  out.host = all.data();
  orr_coll c{};
  c.op = ORR_COLL_ALL_GATHER;
  c.dtype = ORR_I64;
  c.send = {&in, 0, 8};
  c.recv = {&out, 0, 8 * static_cast<uint64_t>(size_)};
  c.counts = ones.data();
  c.name = name;
  family_->check_alive();
  collective(c);
  current_ = nullptr;
  return all;
}

void Group::check_equal(uint64_t bytes) {
  const auto sizes = gather_words(static_cast<int64_t>(bytes), "allocate");
  for (int r = 0; r < size_; ++r)
    if (sizes[r] != sizes[0])
      throw orr::Error(ORR_INVALID,
                       "rank " + std::to_string(world_of_[0]) + " allocates " +
                           std::to_string(sizes[0]) + " bytes of communication memory, rank " +
                           std::to_string(world_of_[r]) + " " + std::to_string(sizes[r]));
}

}  // namespace local
