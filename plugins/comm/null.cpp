// SPDX-License-Identifier: Apache-2.0
//
// comm `null`: moves nothing between ranks, so that a plan or a measurement sees everything but
// communication. Every operation completes at once; a rank's own contribution lands where it
// belongs.
#include <orrery/sdk/comm.hpp>

#include <atomic>
#include <cstdlib>
#include <memory>

#include <orrery/sdk/traffic.hpp>

struct orr_comm {
  int32_t rank, size;
  std::atomic<uint64_t> sent{0};
};
struct orr_work {};

namespace {

orr_work done;

int32_t probe(void*, orr_comm_caps* out, char* reason, uint32_t reason_bytes) {
  *out = orr::host_caps(ORR_COMM_DETERMINISTIC | ORR_COMM_REGISTERED);
  out->tiers |= 1u << ORR_TIER_COMM;
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

orr_status* world(void*, const orr_comm_boot* boot, orr_comm** out) {
  return orr::guard([&] { *out = new orr_comm{boot->rank, boot->world_size}; });
}

orr_status* split(orr_comm*, int32_t, int32_t, orr_comm**) {
  return orr::host->error(ORR_UNIMPLEMENTED,
                          "comm 'null' cannot split: it never hears the other ranks' colors");
}

int32_t rank(orr_comm* comm) { return comm->rank; }
int32_t world_size(orr_comm* comm) { return comm->size; }

// Copies the rank's own elements: `n` of them from element `from` of send to element `to` of recv.
void keep(const orr_coll& c, int64_t from, int64_t to, int64_t n) {
  if (n <= 0 || !c.send.memory || !c.recv.memory) return;
  const int64_t unit = orr_dtype_bytes(c.dtype);
  std::memmove(orr::data<char>(c.recv) + to * unit, orr::data<char>(c.send) + from * unit,
               n * unit);
}

void run(orr_comm& comm, const orr_coll& c) {
  const int r = comm.rank;
  switch (c.op) {
    case ORR_COLL_ALL_REDUCE: keep(c, 0, 0, c.count); break;
    case ORR_COLL_BROADCAST:
    case ORR_COLL_REDUCE: keep(c, 0, 0, r == c.root_or_peer ? c.count : 0); break;
    case ORR_COLL_REDUCE_SCATTER: keep(c, orr::traffic::sum(c.counts, r), 0, c.counts[r]); break;
    case ORR_COLL_ALL_GATHER: keep(c, 0, orr::traffic::sum(c.counts, r), c.counts[r]); break;
    case ORR_COLL_ALL_TO_ALL:
      keep(c, orr::traffic::sum(c.counts, r), orr::traffic::sum(c.recv_counts, r), c.counts[r]);
      break;
    case ORR_COLL_TREE_ALL_REDUCE:
      if (orr::traffic::nodes(c, r, comm.size) > 0) keep(c, 0, 0, c.count);
      break;
    case ORR_COLL_TREE_REDUCE_SCATTER:
      if (orr::traffic::nodes(c, r, comm.size) > 0) keep(c, c.recv_counts[r], 0, c.counts[r]);
      break;
    default: break;
  }
  comm.sent.fetch_add(orr::traffic::bytes_sent(c, r, comm.size), std::memory_order_relaxed);
}

orr_status* post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  return orr::guard([&] {
    for (int32_t i = 0; i < n; ++i) run(*comm, ops[i]);
    *out = &done;
  });
}

orr_status* wait(orr_comm*, orr_work*) { return nullptr; }

orr_status* allocate(orr_comm*, uint64_t bytes, orr_memory** out) {
  return orr::guard([&] {
    constexpr uint64_t page = 4096;
    const uint64_t whole = std::max(page, (bytes + page - 1) / page * page);
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(page, whole), std::free);
    if (!memory) throw orr::Error(ORR_FAILED, "no memory for " + std::to_string(bytes) + " bytes");
    std::memset(memory.get(), 0, whole);
    *out = new orr_memory{sizeof(orr_memory), ORR_TIER_COMM, bytes,  memory.get(),
                          memory.get(),       "host",        nullptr};
    memory.release();
  });
}

void free_memory(orr_comm*, orr_memory* memory) {
  if (!memory) return;
  std::free(memory->host);
  delete memory;
}

void abort_all(orr_comm*, const char*) {}
orr_status* async_error(orr_comm*) { return nullptr; }
void destroy(orr_comm* comm) { delete comm; }
uint64_t bytes_sent(orr_comm* comm) { return comm->sent.load(std::memory_order_relaxed); }

constexpr orr_comm_api api = {
    sizeof(orr_comm_api), nullptr, probe,      world,    split,       rank,
    world_size,           post,    wait,       allocate, free_memory, abort_all,
    async_error,          destroy, bytes_sent, nullptr};

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "null", "1.0.0",
           "No communication: for planning and for measuring the rest", orr::comm_entry<api>, 1,
           {{"comm", 1, 1}})
