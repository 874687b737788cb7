// SPDX-License-Identifier: Apache-2.0
//
// Device buffers: NCCL's operations on the caller's stream, in one group. Where counts are uneven,
// an operation becomes one per rank inside the group.
#include <algorithm>

#include <orrery/sdk/traffic.hpp>

#include "comm.h"

namespace nccl {
namespace {

char* address_of(const orr_buffer& b) {
  return b.memory ? static_cast<char*>(b.memory->native) + b.offset : nullptr;
}

CUstream stream_of(const orr_coll& c) { return reinterpret_cast<CUstream>(c.stream); }

bool even(const int64_t* counts, int ranks) {
  return std::all_of(counts, counts + ranks, [&](int64_t n) { return n == counts[0]; });
}

[[noreturn]] void refuse(const orr_coll& c, int32_t code, const std::string& why) {
  throw orr::Error(code, std::string(orr::traffic::name(c.op)) +
                             (c.name ? std::string(" '") + c.name + "'" : "") + ": " + why);
}

}  // namespace

void Comm::check_device(const orr_coll& c, const orr_coll& first) const {
  if (orr::traffic::is_tree(c.op))
    refuse(c, ORR_UNIMPLEMENTED, "trees are added on the host: give it host buffers");
  if (c.stream != first.stream) refuse(c, ORR_INVALID, "the operations of a group have one stream");
  for (const orr_buffer* b : {&c.send, &c.recv})
    if (b->memory && b->memory->tier != ORR_TIER_DEVICE)
      refuse(c, ORR_INVALID, "one buffer is the device's and the other is not");
  if (c.op == ORR_COLL_ALL_TO_ALL && c.send.memory == c.recv.memory &&
      c.send.offset == c.recv.offset)
    refuse(c, ORR_UNIMPLEMENTED,
           "in place, what arrives would overwrite what is still to be sent: give it two buffers");
}

std::unique_ptr<Work> Comm::enqueue(const std::vector<orr_coll>& ops) {
  auto work = std::make_unique<Work>(ops.front(), size_);
  current_ = &ops.front();
  issue("the group", [&] {
    for (const orr_coll& c : ops) enqueue_one(c);
  });
  work->end.record(stream_of(ops.front()));
  return work;
}

void Comm::enqueue_one(const orr_coll& c) {
  const Library& lib = library();
  const ncclDataType_t type = type_of(c.dtype);
  const ncclRedOp_t redop = operation_of(c.redop);
  char *send = address_of(c.send), *recv = address_of(c.recv);
  const CUstream stream = stream_of(c);
  switch (c.op) {
    case ORR_COLL_BROADCAST:
      if (rank_ != c.root_or_peer) send = recv;
      if (!recv) recv = send;
      return check_nccl(lib.ncclBroadcast(send, recv, c.count, type, c.root_or_peer, comm_, stream),
                        "ncclBroadcast");
    case ORR_COLL_ALL_REDUCE:
      return check_nccl(lib.ncclAllReduce(send, recv, c.count, type, redop, comm_, stream),
                        "ncclAllReduce");
    case ORR_COLL_REDUCE:
      return check_nccl(
          lib.ncclReduce(send, recv, c.count, type, redop, c.root_or_peer, comm_, stream),
          "ncclReduce");
    case ORR_COLL_SEND:
      return check_nccl(lib.ncclSend(send, c.count, type, c.root_or_peer, comm_, stream),
                        "ncclSend");
    case ORR_COLL_RECV:
      return check_nccl(lib.ncclRecv(recv, c.count, type, c.root_or_peer, comm_, stream),
                        "ncclRecv");
    case ORR_COLL_REDUCE_SCATTER: return enqueue_reduce_scatter(c);
    case ORR_COLL_ALL_GATHER: return enqueue_all_gather(c);
    default: return enqueue_all_to_all(c);
  }
}

void Comm::enqueue_reduce_scatter(const orr_coll& c) {
  const Library& lib = library();
  const ncclDataType_t type = type_of(c.dtype);
  const ncclRedOp_t redop = operation_of(c.redop);
  char *send = address_of(c.send), *recv = address_of(c.recv);
  const CUstream stream = stream_of(c);
  if (even(c.counts, size_))
    return check_nccl(lib.ncclReduceScatter(send, recv, c.counts[0], type, redop, comm_, stream),
                      "ncclReduceScatter");
  for (int r = 0; r < size_; ++r) {
    if (c.counts[r] > 0)
      check_nccl(lib.ncclReduce(send, recv, c.counts[r], type, redop, r, comm_, stream),
                 "ncclReduce");
    send += c.counts[r] * orr_dtype_bytes(c.dtype);
  }
}

void Comm::enqueue_all_gather(const orr_coll& c) {
  const Library& lib = library();
  const ncclDataType_t type = type_of(c.dtype);
  char *send = address_of(c.send), *recv = address_of(c.recv);
  const CUstream stream = stream_of(c);
  if (even(c.counts, size_))
    return check_nccl(lib.ncclAllGather(send, recv, c.counts[0], type, comm_, stream),
                      "ncclAllGather");
  for (int r = 0; r < size_; ++r) {
    if (c.counts[r] > 0)
      check_nccl(
          lib.ncclBroadcast(r == rank_ ? send : recv, recv, c.counts[r], type, r, comm_, stream),
          "ncclBroadcast");
    recv += c.counts[r] * orr_dtype_bytes(c.dtype);
  }
}

void Comm::enqueue_all_to_all(const orr_coll& c) {
  const Library& lib = library();
  const ncclDataType_t type = type_of(c.dtype);
  const int64_t unit = orr_dtype_bytes(c.dtype);
  char *send = address_of(c.send), *recv = address_of(c.recv);
  for (int r = 0; r < size_; ++r) {
    if (c.counts[r] > 0)
      check_nccl(lib.ncclSend(send, c.counts[r], type, r, comm_, stream_of(c)), "ncclSend");
    if (c.recv_counts[r] > 0)
      check_nccl(lib.ncclRecv(recv, c.recv_counts[r], type, r, comm_, stream_of(c)), "ncclRecv");
    send += c.counts[r] * unit;
    recv += c.recv_counts[r] * unit;
  }
}

}  // namespace nccl
