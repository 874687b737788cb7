// SPDX-License-Identifier: Apache-2.0
//
// Posting an operation: is it well-formed here, and do all ranks post the same one? The answer to the
// second question costs nothing extra, for it travels with the first publication of the data.
#include <orrery/sdk/plugin.hpp>

#include "comm.h"
#include "words.h"

namespace local {

using shared::Card;

void Comm::announce(const orr_coll& c, Path path, uint64_t most) {
  Post& p = segment_.member(rank_).posts[(step_ + 1) & 1];
  p.card = shared::card_of(c, size_);
  p.path = path;
  p.most = most;
  const bool in_place = path == path_direct || path == path_attached;
  p.send = in_place ? place_of(c.send) : Place{};
  p.recv = in_place ? place_of(c.recv) : Place{};
  publish();
  await_step();
  verify_agreement();
}

// All ranks see the same posts, so that all say the same.
void Comm::verify_agreement() {
  const Card& a = post_of(0).card;
  for (int r = 1; r < size_; ++r) {
    const Card& b = post_of(r).card;
    if (agree(a, b)) continue;
    const std::string text = disagreement(a, world_of_[0], b, world_of_[r]);
    poison(ORR_FAILED, text);
    family_->check_alive();
    throw orr::Error(ORR_FAILED, text);
  }
}

std::vector<int64_t> Comm::gather_words(int64_t mine, const char* name) {
  return local::gather_words(size_, mine, name, [this](const orr_coll& c) {
    current_ = &c;
    family_->check_alive();
    move(c);
    current_ = nullptr;
  });
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  switch (c.op) {
    case ORR_COLL_BARRIER: announce(c, path_small, 0); break;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_ALL_TO_ALL: move(c); break;
    default: reduce(c);
  }
}

// A group's sends and receives start together; its collectives follow in their order.
void Comm::run(const orr_coll* ops, int n) {
  family_->check_alive();
  for (int i = 0; i < n; ++i) shared::check(ops[i], rank_, size_, false);
  transfer(ops, n);
  for (int i = 0; i < n; ++i)
    if (!shared::paired(ops[i])) collective(ops[i]);
  current_ = nullptr;
  count_sent(ops, n);
}

}  // namespace local
