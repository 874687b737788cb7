// SPDX-License-Identifier: Apache-2.0
//
// Helpers for comm plugins in C++: most of the table from a class, and the entry function.
#pragma once

#include <orrery/comm.h>

#include <memory>
#include <orrery/sdk/plugin.hpp>

namespace orr {

// A table whose orr_comm is an object of a class C with
//
//   std::unique_ptr<C> split(int32_t color, int32_t key);  // null for color -1
//   int rank() const, size() const;  uint64_t bytes_sent() const;
//
// std::unique_ptr<C> form_world(const orr_comm_boot&) makes the first one. Set the other slots:
// post, wait, abort, async_error, and allocate and free if the backend has them.
template <class C, auto form_world>
constexpr orr_comm_api comm_table(decltype(orr_comm_api::probe) probe) {
  orr_comm_api t{};
  t.size = sizeof t;
  t.probe = probe;
  t.world = [](void*, const orr_comm_boot* boot, orr_comm** out) {
    return guard([&] { *out = reinterpret_cast<orr_comm*>(form_world(*boot).release()); });
  };
  t.split = [](orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
    return guard([&] {
      *out = reinterpret_cast<orr_comm*>(reinterpret_cast<C*>(parent)->split(color, key).release());
    });
  };
  t.rank = [](orr_comm* comm) { return int32_t{reinterpret_cast<C*>(comm)->rank()}; };
  t.world_size = [](orr_comm* comm) { return int32_t{reinterpret_cast<C*>(comm)->size()}; };
  t.destroy = [](orr_comm* comm) { delete reinterpret_cast<C*>(comm); };
  t.bytes_sent = [](orr_comm* comm) { return reinterpret_cast<C*>(comm)->bytes_sent(); };
  return t;
}

// The object behind an orr_comm of such a table.
template <class C>
C& comm_of(orr_comm* comm) {
  return *reinterpret_cast<C*>(comm);
}

// Sets `post` and `wait` for a backend whose run(ops, n) completes the operations: work handles are
// only placeholders.
template <class C>
constexpr void set_host_ordered(orr_comm_api& t) {
  t.post = [](orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
    return guard([&] {
      comm_of<C>(comm).run(ops, n);
      *out = reinterpret_cast<orr_work*>(comm);
    });
  };
  t.wait = [](orr_comm*, orr_work*) -> orr_status* { return nullptr; };
}

// The caps of a backend with every operation and every dtype, in host memory.
inline orr_comm_caps host_caps(uint32_t flags) {
  orr_comm_caps caps{};
  caps.size = sizeof caps;
  caps.flags = flags;
  for (int op = ORR_COLL_BARRIER; op <= ORR_COLL_TREE_REDUCE_SCATTER; ++op)
    caps.ops |= uint64_t{1} << op;
  for (int dtype = ORR_F32; dtype <= ORR_U8; ++dtype) caps.dtypes |= uint64_t{1} << dtype;
  caps.tiers = 1u << ORR_TIER_HOST;
  return caps;
}

// The entry function of a plugin with one backend.
template <const orr_comm_api& table>
orr_status* comm_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "comm" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace orr
