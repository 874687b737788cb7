// SPDX-License-Identifier: Apache-2.0
//
// comm `local`: shared memory between the ranks of one host, TCP between hosts. Host-ordered: `post` moves the bytes on
// the caller's thread and is done at return, so a work handle says nothing.
#include <orrery/comm.h>
#include <orrery/sdk/plugin.hpp>

#include "comm.h"

struct orr_comm {
  std::unique_ptr<local::Group> impl;
};
struct orr_work {};

namespace {

orr_work done;

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  *out = {};
  out->size = sizeof *out;
  out->flags = ORR_COMM_DETERMINISTIC | ORR_COMM_REGISTERED | ORR_COMM_PEER_DEATH;
  for (int op = ORR_COLL_BARRIER; op <= ORR_COLL_TREE_REDUCE_SCATTER; ++op) out->ops |= uint64_t{1} << op;
  for (int dtype = ORR_F32; dtype <= ORR_U8; ++dtype) out->dtypes |= uint64_t{1} << dtype;
  out->tiers = 1u << ORR_TIER_HOST | 1u << ORR_TIER_COMM;
  out->max_ranks = local::max_ranks;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

orr_comm* give(std::unique_ptr<local::Group> comm) {
  return comm ? new orr_comm{std::move(comm)} : nullptr;
}

orr_status* world(void*, const orr_comm_boot* boot, orr_comm** out) {
  return orr::guard([&] { *out = give(local::form_world(*boot)); });
}

orr_status* split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  return orr::guard([&] { *out = give(parent->impl->split(color, key)); });
}

int32_t rank(orr_comm* comm) { return comm->impl->rank(); }
int32_t world_size(orr_comm* comm) { return comm->impl->size(); }

orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  return orr::guard([&] {
    comm->impl->run(ops, n);
    *out = &done;
  });
}

orr_status* wait(orr_comm*, orr_work*) { return nullptr; }

orr_status* allocate(orr_comm* comm, uint64_t bytes, orr_memory** out) {
  return orr::guard([&] { *out = comm->impl->allocate(bytes); });
}

void free_memory(orr_comm* comm, orr_memory* memory) { comm->impl->free(memory); }

void abort_all(orr_comm* comm, const char* reason) {
  local::Family& family = comm->impl->family();
  family.kill(ORR_RETRY, "rank " + std::to_string(family.boot.rank) + " aborted: " + reason);
}

orr_status* async_error(orr_comm* comm) {
  return orr::guard([&] { comm->impl->check_alive(); });
}

void destroy(orr_comm* comm) { delete comm; }

uint64_t bytes_sent(orr_comm* comm) { return comm->impl->bytes_sent(); }

orr_comm_api api = {sizeof(orr_comm_api), nullptr, probe, world,     split,       rank,    world_size, post,
                    wait,                 allocate, free_memory, abort_all, async_error, destroy, bytes_sent};

const void* get(void*, const char* id, uint32_t version) {
  return std::string_view(id) == "comm" && version == 1 ? &api : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof *out, nullptr, get, nullptr};
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "local", "1.0.0", "Shared memory on one host, TCP between hosts", entry, 1,
           {{"comm", 1, 1}})
