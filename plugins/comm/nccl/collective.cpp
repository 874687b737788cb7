// SPDX-License-Identifier: Apache-2.0
//
// Collectives of host buffers. NCCL adds in an order of its own; only the trees, which promise an
// order, are added by us over messages. What moves goes as messages, too.
#include <cstring>

#include <orrery/sdk/traffic.hpp>

#include "comm.h"

namespace nccl {

static_assert(ncclInt32 == 2 && ncclInt64 == 4 && ncclFloat16 == 6 && ncclFloat32 == 7 &&
                  ncclFloat64 == 8 && ncclBfloat16 == 9 && ncclUint8 == 1 && ncclSum == 0 &&
                  ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclInProgress == 7,
              "the library is opened by name: its numbers must be these");

ncclDataType_t type_of(int32_t dtype) {
  switch (dtype) {
    case ORR_F32: return ncclFloat32;
    case ORR_F64: return ncclFloat64;
    case ORR_BF16: return ncclBfloat16;
    case ORR_F16: return ncclFloat16;
    case ORR_I32: return ncclInt32;
    case ORR_I64: return ncclInt64;
    default: return ncclUint8;
  }
}

ncclRedOp_t operation_of(int32_t redop) {
  switch (redop) {
    case ORR_RED_PROD: return ncclProd;
    case ORR_RED_MIN: return ncclMin;
    case ORR_RED_MAX: return ncclMax;
    default: return ncclSum;
  }
}

namespace {

char* address_of(const orr_buffer& b) { return b.memory ? orr::data<char>(b) : nullptr; }

}  // namespace

// Waits until the slot is free, and hands on what it holds.
void Comm::empty(Slot& slot) {
  if (!slot.busy) return;
  await(Staging::slot_bytes, [&] { return slot.used.done(); });
  const char* from = slot.pinned;
  for (const Span& s : slot.to) {
    std::memcpy(s.data, from, static_cast<size_t>(s.bytes));
    from += s.bytes;
  }
  slot.to.clear();
  slot.busy = false;
}

void Comm::flush() {
  empty(family_->staging().next());
  empty(family_->staging().next());
}

// call(memory, n) enqueues NCCL's operation on n elements in place; `from` is null where this rank
// gives nothing, `to` where it gets nothing. One chunk is under way while the other is filled or
// emptied.
template <class F>
void Comm::in_chunks(const char* what, const char* from, char* to, int64_t count, int64_t unit,
                     F&& call) {
  const Library& lib = library();
  const CUstream stream = family_->device().stream();
  const int64_t most = Staging::slot_bytes / unit;
  for (int64_t at = 0; at < count; at += most) {
    Slot& slot = family_->staging().next();
    empty(slot);
    const int64_t n = std::min(most, count - at), bytes = n * unit;
    if (from) {
      std::memcpy(slot.pinned, from + at * unit, static_cast<size_t>(bytes));
      check_cuda(lib.cuMemcpyHtoDAsync(slot.device, slot.pinned, bytes, stream),
                 "cuMemcpyHtoDAsync");
    }
    issue(what, [&] { check_nccl(call(pointer(slot.device), n), what); });
    if (to) {
      check_cuda(lib.cuMemcpyDtoHAsync(slot.pinned, slot.device, bytes, stream),
                 "cuMemcpyDtoHAsync");
      slot.to = {{to + at * unit, bytes}};
    }
    slot.used.record(stream);
    slot.busy = true;
  }
  flush();
}

// Two words tell whether all ranks post the same: the largest digest and the largest of its
// complement. Only when they differ do the cards travel, and then every rank says the same
// sentence.
void Comm::agree(const orr_coll& c) {
  const shared::Card card = shared::card_of(c, size_);
  const uint64_t digest = shared::hash(&card, offsetof(shared::Card, label), 2);
  uint64_t words[] = {digest, ~digest};
  char* bytes = reinterpret_cast<char*>(words);
  in_chunks("ncclAllReduce", bytes, bytes, 2, sizeof digest, [&](void* memory, int64_t n) {
    return library().ncclAllReduce(memory, memory, n, ncclUint64, ncclMax, comm_,
                                   family_->device().stream());
  });
  if (words[0] == ~words[1]) return;
  std::vector<shared::Card> cards(static_cast<size_t>(size_), card);
  gather(&card, sizeof card, cards.data());
  family_->fail(ORR_FAILED, shared::disagreement(cards, world_of_));
}

// The same number of bytes from each rank, in rank order.
void Comm::gather(const void* mine, int64_t bytes, void* all) {
  char* to = static_cast<char*>(all);
  char* own = to + rank_ * bytes;
  std::memcpy(own, mine, static_cast<size_t>(bytes));
  std::vector<orr::exchange::Message> sends, recvs;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    sends.push_back({r, own, bytes});
    recvs.push_back({r, to + r * bytes, bytes});
  }
  exchange(sends, recvs);
}

void Comm::broadcast(const orr_coll& c) {
  const bool root = rank_ == c.root_or_peer;
  char *send = address_of(c.send), *recv = address_of(c.recv);
  const int64_t bytes = c.count * orr_dtype_bytes(c.dtype);
  if (root && recv && recv != send && bytes > 0)
    std::memmove(recv, send, static_cast<size_t>(bytes));
  in_chunks("ncclBroadcast", root ? send : nullptr, root ? nullptr : recv, bytes, 1,
            [&](void* memory, int64_t n) {
              return library().ncclBroadcast(memory, memory, n, ncclUint8, c.root_or_peer, comm_,
                                             family_->device().stream());
            });
}

// `count` elements from `first` on, to the beginning of the root's recv.
void Comm::reduce_to(const orr_coll& c, int root, int64_t first, int64_t count) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  if (count == 0) return;
  in_chunks(
      "ncclReduce", address_of(c.send) + first * unit, rank_ == root ? address_of(c.recv) : nullptr,
      count, unit, [&](void* memory, int64_t n) {
        return library().ncclReduce(memory, memory, n, type_of(c.dtype), operation_of(c.redop),
                                    root, comm_, family_->device().stream());
      });
}

void Comm::all_reduce(const orr_coll& c) {
  in_chunks("ncclAllReduce", address_of(c.send), address_of(c.recv), c.count,
            orr_dtype_bytes(c.dtype), [&](void* memory, int64_t n) {
              return library().ncclAllReduce(memory, memory, n, type_of(c.dtype),
                                             operation_of(c.redop), comm_,
                                             family_->device().stream());
            });
}

void Comm::collective(const orr_coll& c) {
  current_ = &c;
  agree(c);
  switch (c.op) {
    case ORR_COLL_BARRIER: break;  // to agree is to have met
    case ORR_COLL_BROADCAST: broadcast(c); break;
    case ORR_COLL_ALL_REDUCE: all_reduce(c); break;
    case ORR_COLL_REDUCE: reduce_to(c, c.root_or_peer, 0, c.count); break;
    case ORR_COLL_REDUCE_SCATTER:
      for (int r = 0; r < size_; ++r) reduce_to(c, r, orr::traffic::sum(c.counts, r), c.counts[r]);
      break;
    case ORR_COLL_ALL_GATHER:
    case ORR_COLL_ALL_TO_ALL: orr::exchange::move(c, rank_, size_, *this); break;
    default: orr::exchange::reduce(c, rank_, size_, *this);
  }
}

}  // namespace nccl
