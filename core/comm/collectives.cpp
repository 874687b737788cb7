// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives.h"

#include <algorithm>

#include "base/error.h"
#include "comm/agreement.h"
#include "comm/collective_moves.h"
#include "comm/host_buffer.h"

namespace orrery {
namespace {

using moves::Job;

void barrier(Job&) {}  // agreeing on it is already a barrier

Description description_of(const CollectiveCall& call);

// Takes part in every collective of the other ranks with zeros, until all ranks have joined.
void join(Job& job) {
  for (Signature mine;;) {
    ++mine.joined;
    const std::vector<Signature> all = agree(job.post, job.size, mine, description_of(job.call));
    const auto active =
        std::find_if(all.begin(), all.end(), [](const Signature& n) { return !n.joined; });
    if (active == all.end()) {
      for (int r = 0; r < job.size; ++r)
        if (all[static_cast<size_t>(r)].joined <= all[static_cast<size_t>(job.answer.last)].joined)
          job.answer.last = r;
      return;
    }
    CollectiveCall zeros{Collective::allreduce, {}, "sum", 0, {}, "", job.call.line,
                         job.call.group};
    for (int32_t dtype = ORR_F32; dtype <= ORR_BOOL; ++dtype)
      if (int64_t n = active->counts[dtype])
        zeros.tensors.push_back(HostTensor::make({dtype, {n}}));
    CollectiveResult unread;
    Job stand_in{zeros, unread, job.rank, job.size, job.post, job.where};
    moves::allreduce(stand_in);
  }
}

// The properties of a collective, and the function that carries it out.
struct Row {
  const char* name;
  bool reduces;   // it uses CollectiveCall::op
  bool roots;     // it uses CollectiveCall::root
  bool cuts;      // tensors need a first dim
  bool own_rows;  // ranks may have different extents of the first dim
  void (*run)(Job&);
};
constexpr Row rows[] = {{"allreduce", true, false, false, false, moves::allreduce},
                        {"broadcast", false, true, false, false, moves::broadcast},
                        {"allgather", false, false, true, true, moves::allgather},
                        {"reduce_scatter", true, false, true, false, moves::reduce_scatter},
                        {"alltoall", false, false, true, true, moves::alltoall},
                        {"barrier", false, false, false, false, barrier},
                        {"join", false, false, false, false, join}};
const Row& row_of(Collective kind) { return rows[static_cast<size_t>(kind)]; }

std::string type_text(const Row& row, const Type& type) {
  if (!row.own_rows) return to_string(type);
  std::string text = to_string(Dims(type.dims.begin() + 1, type.dims.end()));
  return fmt::format("{}[*{}{}", dtype_name(type.dtype), text.size() > 2 ? "," : "",
                     text.substr(1));
}

Description description_of(const CollectiveCall& call) {
  const Row& row = row_of(call.kind);
  std::string text = row.name;
  if (!call.name.empty()) text += fmt::format(" '{}'", call.name);
  const size_t n = call.tensors.size();
  for (size_t i = 0; i < n; ++i)
    text += (i       ? ", "
             : n > 1 ? fmt::format(" of {} tensors ", n)
                     : " of ") +
            type_text(row, call.tensors[i].type);
  if (row.reduces) text += ", op " + call.op;
  if (row.roots) text += fmt::format(", root {}", call.root);
  return {text, call.line};
}

Signature signature_of(const CollectiveCall& call) {
  Signature n;
  n.stands_in = call.kind == Collective::barrier ||
                (call.kind == Collective::allreduce && (call.op == "sum" || call.op == "mean"));
  if (call.kind == Collective::allreduce)
    for (const HostTensor& t : call.tensors) n.counts[t.type.dtype] += t.type.elements();
  return n;
}

void check_splits(const CollectiveCall& call, int size) {
  const int64_t have = call.tensors.front().type.dims[0];
  if (call.splits.empty() && have % size)
    fail(ORR_INVALID,
         "alltoall cuts dim 1 of {} into {} equal parts: name the rows of each rank with splits",
         to_string(call.tensors.front().type), size);
  if (call.splits.empty()) return;
  int64_t sum = 0;
  for (int64_t n : call.splits) {
    if (n < 0) fail(ORR_INVALID, "alltoall: splits has {}: a rank gets 0 rows or more", n);
    sum += n;
  }
  if (static_cast<int>(call.splits.size()) != size || sum != have)
    fail(ORR_INVALID,
         "alltoall: splits has {} numbers with sum {}: it needs one for each of {} ranks, with sum "
         "{}",
         call.splits.size(), sum, size, have);
}

void check(const CollectiveCall& call, int size) {
  const Row& row = row_of(call.kind);
  if (row.reduces) moves::redop(call.op);
  if (row.roots && (call.root < 0 || call.root >= size))
    fail(ORR_INVALID, "root is {}: ranks are 0..{}", call.root, size - 1);
  for (const HostTensor& t : call.tensors) {
    if (row.cuts && t.type.dims.empty())
      fail(ORR_INVALID, "{} works along dim 1: a scalar has none", row.name);
    if (row.reduces && call.op == "mean" && t.type.dtype != ORR_F32 && t.type.dtype != ORR_F64)
      fail(ORR_INVALID, "a mean over ranks needs f32 or f64, not {}; use op = \"sum\"",
           dtype_name(t.type.dtype));
  }
  if (call.kind == Collective::alltoall) check_splits(call, size);
}

void carry_out(const CollectiveCall& call, CollectiveResult& answer, int rank, int size,
               const WorldComm::Post& post) {
  const Description description = description_of(call);
  Job job{call,
          answer,
          rank,
          size,
          post,
          call.agreed || call.name.empty() ? call.line
                                           : fmt::format("{}, named '{}'", call.line, call.name)};
  if (!call.agreed && call.kind != Collective::join)
    agree(post, size, signature_of(call), description);
  row_of(call.kind).run(job);
}

// Sends or receives a message, which the peer must receive or send.
void transfer(WorldComm& comm, int32_t op, const HostTensor& x, const Route& route) {
  const char* name = op == ORR_COLL_SEND ? "send" : "recv";
  const int size = comm.size(route.group);
  if (route.peer < 0 || route.peer >= size)
    fail(ORR_INVALID, "{}: rank {} is outside of the {} ranks 0..{}", name, route.peer, size,
         size - 1);
  if (route.peer == comm.rank(route.group))
    fail(ORR_INVALID, "{}: rank {} is this rank itself: it has the tensor already", name,
         route.peer);
  const HostBuffer buffer(x);
  orr_coll c = collective(op, x.type.dtype, name, route.line);
  c.root_or_peer = route.peer, c.tag = route.tag, c.count = x.type.elements();
  (op == ORR_COLL_SEND ? c.send : c.recv) = buffer.all();
  comm.wait(comm.submit({c}, route.group));
}

}  // namespace

const char* collective_name(Collective kind) { return row_of(kind).name; }

const CollectiveResult& PostedCollective::wait() const {
  comm_.wait(ticket_);
  return *answer_;
}

PostedCollective post(WorldComm& comm, CollectiveCall call) {
  const int rank = comm.rank(call.group), size = comm.size(call.group), group = call.group;
  check(call, size);
  auto answer = std::make_shared<CollectiveResult>();
  const auto work = [call = std::move(call), answer, rank, size](const WorldComm::Post& post) {
    carry_out(call, *answer, rank, size, post);
  };
  return {comm, answer, comm.submit(work, group)};
}

void send_tensor(WorldComm& comm, const HostTensor& x, const Route& to) {
  transfer(comm, ORR_COLL_SEND, x, to);
}

HostTensor recv_tensor(WorldComm& comm, const Type& type, const Route& from) {
  const HostTensor y = HostTensor::make(type);
  transfer(comm, ORR_COLL_RECV, y, from);
  return y;
}

}  // namespace orrery
