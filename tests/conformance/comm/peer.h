// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of a communicator under test, with plain descriptors and reproducible data.
#pragma once

#include <orrery/comm.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <orrery/sdk/descriptor.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/emulation.h"
#include "launch/environment.h"
#include "launch/store.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace comm_suite {

using orrery::check;
using orrery::fail;

// A communicator of the backend, freed with its memory.
struct Peer {
  explicit Peer(const std::string& backend)
      : world(orrery::detect()),
        store(orrery::Store::open(world)),
        api(orrery::Registry::get().comm(backend)) {
    const orr_comm_boot boot = store->boot(world);
    check(api.world(api.self, &boot, &comm));
    known.size = sizeof known;
    char reason[256];
    api.probe(api.self, &known, reason, sizeof reason);
  }
  Peer(const Peer& parent, int color, int key)
      : world(parent.world), api(parent.api), known(parent.known) {
    check(api.split(parent.comm, color, key, &comm));
  }
  ~Peer() {
    if (comm) api.destroy(comm);
  }
  orr_comm_caps caps() const {
    orr_comm_caps caps = known;
    if (only_messages) caps.ops = uint64_t{1} << ORR_COLL_SEND | uint64_t{1} << ORR_COLL_RECV;
    return caps;
  }
  bool has(uint32_t flag) const { return caps().flags & flag; }
  // The places that data may lie in: private memory, and registered where the backend has it.
  std::vector<bool> places() const {
    return has(ORR_COMM_REGISTERED) ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }
  int rank() const { return api.rank(comm); }
  int size() const { return api.world_size(comm); }
  // As the core does: what the backend does not have is composed of its messages.
  void post(const std::vector<orr_coll>& ops) {
    const orr_comm_caps has = caps();
    std::vector<orr_coll> own;
    for (const orr_coll& c : ops)
      if (orrery::is_native(has, c))
        own.push_back(c);
      else
        orrery::emulate(c, rank(), size(),
                        [&](const orr_coll* messages, int32_t n) { post_now(messages, n); });
    if (!own.empty()) post_now(own.data(), static_cast<int32_t>(own.size()));
  }
  void post_now(const orr_coll* ops, int32_t n) {
    for (int32_t i = 0; only_messages && i < n; ++i)
      if (!orr::is_paired(ops[i].op))
        fail(ORR_UNIMPLEMENTED, "operation {} is not here", ops[i].op);
    orr_work* work = nullptr;
    check(api.post(comm, ops, n, &work));
    check(api.wait(comm, work));
  }
  void post(const orr_coll& op) { post(std::vector<orr_coll>{op}); }
  void barrier() { post(make(ORR_COLL_BARRIER)); }

  static orr_coll make(int op, int dtype = ORR_F32, int redop = ORR_RED_SUM) {
    orr_coll c{};
    c.size = sizeof c;
    c.op = op;
    c.dtype = dtype;
    c.redop = redop;
    return c;
  }

  static inline bool only_messages =
      false;  // of what the backend has, sends and receives alone are used

  orrery::World world;
  std::unique_ptr<orrery::Store> store;
  const orr_comm_api& api;
  orr_comm_caps known{};
  orr_comm* comm = nullptr;
};

// Memory of one place, zero: private, of which pages exist once they are touched, or the registered
// slab. Offsets are dealt in multiples of 64.
class Slab {
 public:
  Slab(Peer& peer, bool registered, uint64_t bytes) {
    if (registered) {
      orr_memory* m = nullptr;
      check(peer.api.allocate(peer.comm, bytes, &m));
      memory_ = m;
      return;
    }
    bytes_.reset(static_cast<char*>(std::calloc(std::max<uint64_t>(bytes, 1), 1)));
    if (!bytes_) fail(ORR_FAILED, "no {} bytes of memory", bytes);
    own_.size = sizeof own_;
    own_.bytes = bytes;
    own_.host = bytes_.get();
    memory_ = &own_;
  }
  Slab(const Slab&) = delete;
  orr_buffer part(uint64_t offset, uint64_t bytes) const { return {memory_, offset, bytes}; }
  char* at(uint64_t offset) const { return static_cast<char*>(memory_->host) + offset; }

 private:
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<char[], Free> bytes_;
  orr_memory own_{};
  const orr_memory* memory_ = nullptr;
};

// Of all data; equal on every rank.
inline uint64_t data_seed = 1;

// Element i of sequence s as an element of the dtype: numbers whose sums depend on their order.
inline double number(uint64_t s, uint64_t i) {
  uint64_t h =
      (s + 1) * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9 + (data_seed - 1) * 0xD6E8FEB86659FD93;
  h = (h ^ (h >> 31)) * 0x94D049BB133111EB;
  h ^= h >> 29;
  constexpr double scales[] = {0x1p-22, 0x1p-23, 0x1p-24, 0x1p-25};
  return (static_cast<double>(h >> 40) - 8388608.0) * scales[h & 3];
}

}  // namespace comm_suite
