// SPDX-License-Identifier: Apache-2.0
#include "wide.h"

#include <algorithm>
#include <orrery/sdk/plugin.hpp>

namespace local {

using shared::Card;

Wide::Wide(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id,
           std::unique_ptr<Comm> host)
    : Group(std::move(family), std::move(world_of), rank, id),
      host_(std::move(host)),
      layered_(has_equal_hosts()),
      cards_(size_) {}

Request Wide::request(const orr_coll& c, int peer, bool sends, Kind kind, int32_t tag, void* data,
                      uint64_t bytes) const {
  return {&c, world_of_[peer], sends, {bytes, id_, kind, tag}, static_cast<char*>(data)};
}

// Cards go before the first messages of a collective, to and from everybody.
void Wide::add_cards(std::vector<Request>& all) {
  cards_[rank_] = shared::card_of(*current_, size_);
  for (int r = 0; r < size_; ++r)
    for (bool sends : {true, false})
      if (r != rank_)
        all.push_back(
            request(*current_, r, sends, card, 0, &cards_[sends ? rank_ : r], sizeof(Card)));
}

// Looks at the cards once all are here, in the order of ranks, so that all ranks say the same.
bool Wide::verify_agreement(const std::vector<Request>& all) {
  for (const Request& p : all)
    if (p.head.kind == card && !p.sends && !p.done) return false;
  const std::string apart = shared::disagreement(cards_, world_of_);
  if (!apart.empty()) family_->die(ORR_FAILED, apart);
  return true;
}

void Wide::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  std::vector<Request> all;
  if (!agreed_) add_cards(all);
  for (const orr::exchange::Message& m : sends)
    all.push_back(request(*current_, m.peer, true, piece, 0, m.data, m.bytes));
  for (const orr::exchange::Message& m : recvs)
    all.push_back(request(*current_, m.peer, false, piece, 0, m.data, m.bytes));
  family_->mesh->run(all, [&] {
    if (!agreed_) agreed_ = verify_agreement(all);
  });
}

void Wide::collective(const orr_coll& c) {
  current_ = &c;
  agreed_ = false;
  if (goes_in_layers(c)) return in_layers(c);
  switch (c.op) {
    case ORR_COLL_BARRIER: break;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_ALL_TO_ALL: orr::exchange::move(c, rank_, size_, *this); break;
    default: orr::exchange::reduce(c, rank_, size_, *this);
  }
  if (!agreed_) exchange({}, {});  // to agree is to have met
}

namespace {

// How the two ends of a message call it.
struct Side {
  int64_t count;
  int32_t dtype;
  shared::Label label;
};

struct Ends {
  Side mine, theirs;
};

}  // namespace

void Wide::transfer(const orr_coll* ops, int n) {
  std::vector<Request> all;
  std::vector<Ends> ends(n);
  for (int i = 0; i < n; ++i) {
    const orr_coll& c = ops[i];
    if (!shared::paired(c)) continue;
    const bool sends = c.op == ORR_COLL_SEND;
    ends[i].mine = {c.count, c.dtype, shared::label_of(c)};
    Side& travels = sends ? ends[i].mine : ends[i].theirs;
    all.push_back(request(c, c.root_or_peer, sends, header, c.tag, &travels, sizeof travels));
    const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
    void* data = bytes > 0 ? orr::data<char>(sends ? c.send : c.recv) : nullptr;
    if (bytes > 0) all.push_back(request(c, c.root_or_peer, sends, body, c.tag, data, bytes));
  }
  if (all.empty()) return;
  family_->mesh->run(all, [&] {
    size_t at = 0;
    for (int i = 0; i < n; ++i) {
      if (!shared::paired(ops[i])) continue;
      const Request& p = all[at];
      at += ops[i].count * orr_dtype_bytes(ops[i].dtype) > 0 ? 2 : 1;
      const auto& [mine, theirs] = ends[i];
      if (p.sends || !p.done || (mine.count == theirs.count && mine.dtype == theirs.dtype))
        continue;
      family_->die(
          ORR_FAILED,
          shared::unequal_ends(
              p.peer, shared::end_of_message(theirs.count, theirs.dtype, theirs.label),
              family_->boot.rank, shared::end_of_message(mine.count, mine.dtype, mine.label)));
    }
  });
}

// In place for the ranks of this host.
orr_memory* Wide::allocate(uint64_t bytes, bool shared) {
  if (shared)
    throw orr::Error(ORR_UNIMPLEMENTED, "ranks of several hosts have no memory that all share");
  check_equal(bytes);
  return host_->allocate(bytes, false);
}

}  // namespace local
