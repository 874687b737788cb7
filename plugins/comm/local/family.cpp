// SPDX-License-Identifier: Apache-2.0
#include "family.h"

#include <unistd.h>

#include <orrery/sdk/plugin.hpp>

#include "../shared/blame.h"
#include "../shared/operation.h"

namespace local {

// The store's word counts; where it says nothing in time, as when it has gone, this rank's own.
void Family::kill(int32_t code, const std::string& text) {
  shared::tell_end(boot, code, text);
  std::string known;
  for (int i = 0; i < 100; ++i, usleep(1000))
    if (shared::told_end(boot, known)) return;
  std::call_once(own_, [&] {
    code_ = code;
    text_ = text;
    ended_ = true;
  });
}

void Family::check_alive() const {
  std::string text;
  if (const int32_t code = shared::told_end(boot, text)) throw orr::Error(code, text);
  if (ended_) throw orr::Error(code_, text_);
}

void Family::die(int32_t code, const std::string& text) {
  kill(code, text);
  check_alive();
  throw orr::Error(code, text);
}

void Family::die_of(int dead_rank, const orr_coll* current) {
  die(ORR_RETRY, "rank " + std::to_string(dead_rank) + " died" + shared::in_operation(current));
}

// The store says which rank ended first, unless rank 0 has served it and is dead: then only that is
// known, and the others have ended because of it.
int Family::cause_of(int closed) const {
  for (int i = 0; i < 20; ++i, usleep(5000))
    if (boot.dead(boot.store, closed)) return closed;
  std::vector<int> all;
  for (int r = 0; r < boot.world_size; ++r) all.push_back(r);
  const int first = shared::first_dead(boot, all);
  return first < 0 ? closed : first;
}

bool Family::has_ended(int rank) const {
  for (int i = 0; i < 200; ++i, usleep(5000))
    if (boot.dead(boot.store, rank)) return true;
  return false;
}

Mapping Family::open(int64_t card, int rank) try {
  return Mapping::open(card);
} catch (const orr::Error&) {
  if (has_ended(rank)) die_of(rank, nullptr);
  throw;
}

}  // namespace local
