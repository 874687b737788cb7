// SPDX-License-Identifier: Apache-2.0
//
// Bad backends.
#include "fault.h"
#include "own_sum.h"
#pragma pop_macro("ORR_PLUGIN")

#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <optional>

namespace {

// The last element of the result, and the one behind it.
float* last_of(const orr_coll& c) { return orr::data<float>(c.recv) + c.count - 1; }

bool is_f32_sum(const orr_coll& c) {
  return c.op == ORR_COLL_ALL_REDUCE && c.dtype == ORR_F32 && c.redop == ORR_RED_SUM && c.count > 0;
}

void spoil(const orr_coll& c) {
  if (!is_f32_sum(c)) return;
  if (fault("wrong_sum_at_odd_counts") && c.count % 2 == 1) *last_of(c) += 1;
  if (fault("fails_for_some_numbers") && *orr::data<float>(c.send) > 1) *last_of(c) += 1;
  if (fault("writes_outside") && c.count > 1) last_of(c)[1] = 0;
  if (fault("spoils_what_it_sends") && c.send.offset != c.recv.offset)
    *orr::data<float>(c.send) += 1;
  if (fault("accumulates_in_bf16"))
    for (float* x = last_of(c) - c.count + 1; x <= last_of(c); ++x) {
      uint32_t bits;
      std::memcpy(&bits, x, 4);
      bits &= 0xFFFF0000u;
      std::memcpy(x, &bits, 4);
    }
}

std::mutex one_at_a_time;

std::optional<orr_coll> put_off;  // a SEND whose buffer is read when its work is long done

orr_status* bad_post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  if (fault("leaks_per_step")) leak(64);
  if (fault("throws_across_the_border") && ops->count > 1000)
    throw std::runtime_error("thrown across the border");
  *out = nullptr;
  if (fault("fails_on_an_empty_part") && ops->op == ORR_COLL_ALL_REDUCE && ops->count == 0)
    return orr::host->error(ORR_INVALID, "there is nothing to add");
  if (fault("follows_no_memory") && ops->op == ORR_COLL_ALL_REDUCE && !ops->send.memory->size)
    return orr::host->error(ORR_INVALID, "its memory is of a newer host");
  if (fault("accepts_any_operation") && ops->op > ORR_COLL_TREE_REDUCE_SCATTER) return nullptr;
  if (fault("reads_buffers_too_late")) {
    orr_work* done;
    if (put_off) whole_post(comm, &*put_off, 1, &done);
    put_off.reset();
    if (n == 1 && ops->op == ORR_COLL_SEND) return put_off = *ops, nullptr;
  }
  orr_coll one = *ops;
  if (fault("ignores_deadlines") || fault("hangs_when_a_peer_dies"))
    one.deadline_ns = int64_t{3600} * 1000000000;
  std::unique_lock turn(one_at_a_time, std::defer_lock);
  if (fault("holds_up_other_communicators")) turn.lock();
  orr_status* status = n == 1 ? whole_post(comm, &one, 1, out) : whole_post(comm, ops, n, out);
  for (int32_t i = 0; i < n && !status; ++i) spoil(ops[i]);
  return status;
}

orr_status* bad_world(void* self, const orr_comm_boot* boot, orr_comm** out) {
  orr_comm_boot other = *boot;
  if (fault("hangs_when_a_peer_dies")) other.dead = [](void*, int32_t) { return 0; };
  return table.world(self, &other, out);
}

orr_status* bad_split(orr_comm* parent, int32_t color, int32_t key, orr_comm** out) {
  if (fault("split_ignores_keys")) key = 0;
  if (fault("split_takes_everyone") && color < 0) color = 7;
  return table.split(parent, color, key, out);
}

int32_t bad_probe(void* self, orr_comm_caps* out, char* reason, uint32_t bytes) {
  const int32_t score = whole_probe(self, out, reason, bytes);
  if (fault("forgets_an_operation")) out->ops &= ~(uint64_t{1} << ORR_COLL_RECV);
  if (fault("shares_copies")) out->flags |= ORR_COMM_SHARED;
  if (fault("holds_up_other_communicators")) out->flags |= ORR_COMM_CONCURRENT;
  if (fault("writes_beyond_caps")) reinterpret_cast<volatile char*>(out)[sizeof *out] = 0;
  return score;
}

orr_status* share_copies(orr_comm*, uint64_t bytes, orr_memory** out) {
  void* own = std::calloc(bytes, 1);
  *out = new orr_memory{sizeof(orr_memory), ORR_TIER_COMM, bytes, own, own, "host", nullptr};
  return nullptr;
}

orr_comm_api bad_table() {
  orr_comm_api bad = table;
  bad.post = bad_post, bad.world = bad_world, bad.split = bad_split, bad.probe = bad_probe;
  bad.bytes_sent = whole_bytes_sent, bad.destroy = whole_destroy;
  if (fault("misses_a_slot")) bad.async_error = nullptr;
  if (fault("has_a_stale_size")) bad.size = offsetof(orr_comm_api, abort);
  if (fault("shares_copies")) bad.allocate_shared = share_copies;
  if (fault("is_deaf_to_abort")) bad.abort = [](orr_comm*, const char*) {};
  if (fault("counts_no_bytes")) bad.bytes_sent = [](orr_comm*) { return uint64_t{0}; };
  if (fault("miscounts_bytes"))
    bad.bytes_sent = [](orr_comm* comm) { return whole_bytes_sent(comm) * 2; };
  return bad;
}

const orr_comm_api bad = bad_table();

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "comm" && version == 1 ? &bad : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, FAULT_NAME, "0.1.0", "A bad backend", bad_entry, 1, {{"comm", 1, 1}})
