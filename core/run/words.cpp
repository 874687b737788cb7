// SPDX-License-Identifier: Apache-2.0
//
// Horovod's words on host tensors. Each is one operation of the world's communicator; in a world of
// one it is the identity.
#include <cstring>

#include "base/error.h"
#include "run/runtime.h"

namespace orrery {
namespace {

// A buffer over ordinary memory, for the time of one call.
struct Borrowed {
  explicit Borrowed(const HostTensor& t) {
    memory.size = sizeof memory, memory.tier = ORR_TIER_HOST;
    memory.bytes = t.bytes->size(), memory.host = t.bytes->data();
    std::strcpy(memory.native_kind, "host");
  }
  orr_buffer all() const { return {&memory, 0, memory.bytes}; }
  orr_memory memory{};
};

orr_coll make(int32_t op, const HostTensor& t, const char* name, const std::string& line) {
  orr_coll c{};
  c.size = sizeof c;
  c.op = op, c.dtype = t.type.dtype, c.count = t.type.elements();
  c.name = name, c.where = line.c_str();
  return c;
}

WorldComm& comm() { return Runtime::get().comm(); }

int32_t redop(const std::string& op) {
  if (op == "sum" || op == "mean") return ORR_RED_SUM;
  if (op == "min") return ORR_RED_MIN;
  if (op == "max") return ORR_RED_MAX;
  if (op == "prod") return ORR_RED_PROD;
  fail(ORR_INVALID, "unknown op '{}': one of sum, mean, min, max, prod", op);
}

template <class T>
void divide(HostTensor& t, int n) {
  for (int64_t i = 0; i < t.type.elements(); ++i) t.data<T>()[i] /= static_cast<T>(n);
}

void mean_of(HostTensor& t, int n) {
  if (t.type.dtype == ORR_F32) divide<float>(t, n);
  else if (t.type.dtype == ORR_F64) divide<double>(t, n);
  else fail(ORR_INVALID, "a mean over ranks needs f32 or f64, not {}; use op = \"sum\"", dtype_name(t.type.dtype));
}

HostTensor copy_of(const HostTensor& x) {
  HostTensor y = HostTensor::make(x.type);
  *y.bytes = *x.bytes;
  return y;
}

void check_peer(int peer, const std::string& line) {
  if (peer < 0 || peer >= comm().size())
    fail(ORR_INVALID, "{}: rank {} is outside the world of {} ranks (0..{})", line, peer, comm().size(), comm().size() - 1);
}

// Every rank's extent of dim 1, so that uneven tensors can meet.
std::vector<int64_t> extents(const HostTensor& x, const std::string& line) {
  HostTensor mine = HostTensor::make({ORR_I64, {1}}), all = HostTensor::make({ORR_I64, {comm().size()}});
  mine.data<int64_t>()[0] = x.type.dims[0];
  Borrowed from(mine), to(all);
  std::vector<int64_t> one(static_cast<size_t>(comm().size()), 1);
  orr_coll c = make(ORR_COLL_ALL_GATHER, mine, "allgather sizes", line);
  c.counts = one.data(), c.send = from.all(), c.recv = to.all();
  comm().run({c});
  return {all.data<int64_t>(), all.data<int64_t>() + comm().size()};
}

}  // namespace

WorldInfo world_info() {
  if (runtime_options().plan_only) return {0, runtime_options().plan_ranks, 0, runtime_options().plan_ranks};
  const World& w = Runtime::get().world();
  return {w.rank, w.size, w.local_rank, w.local_size};
}

HostTensor world_allreduce(const HostTensor& x, const std::string& op, const std::string& line) {
  int32_t red = redop(op);
  HostTensor y = copy_of(x);
  if (comm().size() > 1) {
    Borrowed to(y);
    orr_coll c = make(ORR_COLL_ALL_REDUCE, y, "allreduce", line);
    c.redop = red, c.send = c.recv = to.all();
    comm().run({c});
  }
  if (op == "mean") mean_of(y, comm().size());
  return y;
}

HostTensor world_broadcast(const HostTensor& x, int root, const std::string& line) {
  check_peer(root, line);
  HostTensor y = copy_of(x);
  if (comm().size() == 1) return y;
  Borrowed to(y);
  orr_coll c = make(ORR_COLL_BROADCAST, y, "broadcast", line);
  c.root_or_peer = root, c.send = c.recv = to.all();
  comm().run({c});
  return y;
}

HostTensor world_allgather(const HostTensor& x, const std::string& line) {
  if (x.type.dims.empty()) fail(ORR_INVALID, "{}: allgather joins along dim 1: a scalar has none", line);
  if (comm().size() == 1) return copy_of(x);
  std::vector<int64_t> rows = extents(x, line), counts;
  Type type = x.type;
  type.dims[0] = 0;
  int64_t row = Type{x.type.dtype, {x.type.dims.begin() + 1, x.type.dims.end()}}.elements();
  for (int64_t n : rows) type.dims[0] += n, counts.push_back(n * row);
  HostTensor y = HostTensor::make(type);
  Borrowed from(x), to(y);
  orr_coll c = make(ORR_COLL_ALL_GATHER, x, "allgather", line);
  c.count = 0;  // differs from rank to rank
  c.counts = counts.data(), c.send = from.all(), c.recv = to.all();
  comm().run({c});
  return y;
}

HostTensor world_reduce_scatter(const HostTensor& x, const std::string& op, const std::string& line) {
  int32_t red = redop(op);
  int n = comm().size();
  if (x.type.dims.empty() || x.type.dims[0] % n)
    fail(ORR_INVALID, "{}: reduce_scatter cuts dim 1 of {} into {} equal parts", line, to_string(x.type.dims), n);
  Type type = x.type;
  type.dims[0] /= n;
  HostTensor y = HostTensor::make(type);
  if (n == 1) {
    *y.bytes = *x.bytes;
  } else {
    Borrowed from(x), to(y);
    std::vector<int64_t> counts(static_cast<size_t>(n), type.elements());
    orr_coll c = make(ORR_COLL_REDUCE_SCATTER, x, "reduce_scatter", line);
    c.redop = red, c.counts = counts.data(), c.send = from.all(), c.recv = to.all();
    comm().run({c});
  }
  if (op == "mean") mean_of(y, n);
  return y;
}

HostTensor world_alltoall(const HostTensor& x, const std::string& line) {
  int n = comm().size();
  if (x.type.dims.empty() || x.type.dims[0] % n)
    fail(ORR_INVALID, "{}: alltoall cuts dim 1 of {} into {} equal parts", line, to_string(x.type.dims), n);
  if (n == 1) return copy_of(x);
  HostTensor y = HostTensor::make(x.type);
  Borrowed from(x), to(y);
  std::vector<int64_t> counts(static_cast<size_t>(n), x.type.elements() / n);
  orr_coll c = make(ORR_COLL_ALL_TO_ALL, x, "alltoall", line);
  c.counts = c.recv_counts = counts.data(), c.send = from.all(), c.recv = to.all();
  comm().run({c});
  return y;
}

void world_send(const HostTensor& x, int to, int tag, const std::string& line) {
  check_peer(to, line);
  Borrowed from(x);
  orr_coll c = make(ORR_COLL_SEND, x, "send", line);
  c.root_or_peer = to, c.tag = tag, c.send = from.all();
  comm().run({c});
}

HostTensor world_recv(const Type& type, int from, int tag, const std::string& line) {
  check_peer(from, line);
  HostTensor y = HostTensor::make(type);
  Borrowed to(y);
  orr_coll c = make(ORR_COLL_RECV, y, "recv", line);
  c.root_or_peer = from, c.tag = tag, c.recv = to.all();
  comm().run({c});
  return y;
}

void world_barrier(const std::string& line) {
  if (comm().size() == 1) return;
  orr_coll c{};
  c.size = sizeof c;
  c.op = ORR_COLL_BARRIER, c.dtype = ORR_U8, c.name = "barrier", c.where = line.c_str();
  comm().run({c});
}

}  // namespace orrery
