// SPDX-License-Identifier: Apache-2.0
#include "family.h"

#include <sched.h>
#include <unistd.h>

#include <orrery/sdk/plugin.hpp>

#include "mesh.h"

namespace local {

Family::Family() = default;
Family::~Family() = default;

bool Family::kill(int32_t code, const std::string& text) {
  Poison& p = world.header().poison;
  uint32_t healthy = 0;
  if (!p.state.compare_exchange_strong(healthy, 1)) return false;
  p.code = code;
  orr::copy_text(p.text, text);
  p.state.store(2, std::memory_order_release);
  if (mesh) mesh->tell_end(code, text);
  return true;
}

void Family::check_alive() const {
  const Poison& p = world.header().poison;
  uint32_t state = p.state.load(std::memory_order_acquire);
  if (state == 0) return;
  for (int i = 0; state != 2 && i < 1000; ++i) {
    sched_yield();
    state = p.state.load(std::memory_order_acquire);
  }
  if (state != 2) throw orr::Error(ORR_RETRY, "a peer died while reporting an error");
  throw orr::Error(p.code, p.text);
}

void Family::die(int32_t code, const std::string& text) {
  kill(code, text);
  check_alive();
  throw orr::Error(ORR_FAILED, "the communicator is dead");
}

void Family::die_of(int dead_rank, const orr_coll* current) {
  die(ORR_RETRY, "rank " + std::to_string(dead_rank) + " died" + shared::in_operation(current));
}

Mapping Family::open(int64_t card, int rank) try {
  return Mapping::open(card);
} catch (const orr::Error&) {
  if (has_ended(boot, rank)) die_of(rank, nullptr);
  throw;
}

bool has_ended(const orr_comm_boot& boot, int rank) {
  for (int i = 0; i < 200; ++i, usleep(5000))
    if (boot.dead(boot.store, rank)) return true;
  return false;
}

int64_t Family::deadline_of(const orr_coll* c) const {
  return c && c->deadline_ns > 0 ? c->deadline_ns : boot.deadline_ns;
}

}  // namespace local
