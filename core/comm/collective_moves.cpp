// SPDX-License-Identifier: Apache-2.0
#include "comm/collective_moves.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include "base/error.h"
#include "comm/host_buffer.h"

namespace orrery::moves {
namespace {

template <class T>
void divide(HostTensor& t, int n) {
  for (int64_t i = 0; i < t.type.elements(); ++i) t.data<T>()[i] /= static_cast<T>(n);
}

void finish_mean(Job& job) {
  if (job.call.op != "mean") return;
  for (HostTensor& t : job.answer.tensors)
    t.type.dtype == ORR_F32 ? divide<float>(t, job.size) : divide<double>(t, job.size);
}

int64_t row_elements(const Type& type) {
  return Type{type.dtype, {type.dims.begin() + 1, type.dims.end()}}.elements();
}

HostTensor with_rows(const Type& type, int64_t rows) {
  Type made = type;
  made.dims[0] = rows;
  return HostTensor::make(made);
}

// All tensors of one dtype, one after another in one buffer, so that a list of tensors takes one
// operation for each dtype. All ranks handle the dtypes in the same order.
struct Flat {
  int32_t dtype;
  HostTensor all;
};

std::vector<Flat> flatten(const std::vector<HostTensor>& tensors) {
  std::vector<Flat> flats;
  for (int32_t dtype = ORR_F32; dtype <= ORR_BOOL; ++dtype) {
    int64_t n = 0;
    for (const HostTensor& t : tensors)
      if (t.type.dtype == dtype) n += t.type.elements();
    if (n == 0) continue;
    Flat flat{dtype, HostTensor::make({dtype, {n}})};
    std::byte* to = flat.all.bytes->data();
    for (const HostTensor& t : tensors)
      if (t.type.dtype == dtype) to = std::copy(t.bytes->begin(), t.bytes->end(), to);
    flats.push_back(std::move(flat));
  }
  return flats;
}

HostTensor unflatten(const std::vector<Flat>& flats, const Type& type,
                     std::array<int64_t, ORR_BOOL + 1>& at) {
  const auto flat =
      std::find_if(flats.begin(), flats.end(), [&](auto& f) { return f.dtype == type.dtype; });
  if (flat != flats.end() && flat->all.type.elements() == type.elements())
    return {type, flat->all.bytes};
  HostTensor y = HostTensor::make(type);
  if (y.bytes->empty()) return y;
  int64_t& from = at[static_cast<size_t>(type.dtype)];
  std::copy_n(flat->all.bytes->begin() + from, y.bytes->size(), y.bytes->begin());
  from += static_cast<int64_t>(y.bytes->size());
  return y;
}

// Carries out allreduce and broadcast, which work in place.
void in_place(Job& job, int32_t op, int32_t red) {
  std::vector<Flat> flats = flatten(job.call.tensors);
  std::deque<HostBuffer> buffers;
  std::vector<orr_coll> ops;
  for (const Flat& flat : flats) {
    orr_coll& c = ops.emplace_back(job.make(op, flat.dtype));
    c.redop = red, c.root_or_peer = job.call.root, c.count = flat.all.type.elements();
    c.send = c.recv = buffers.emplace_back(flat.all).all();
  }
  if (!ops.empty()) job.post(ops);
  std::array<int64_t, ORR_BOOL + 1> at{};
  for (const HostTensor& t : job.call.tensors)
    job.answer.tensors.push_back(unflatten(flats, t.type, at));
  finish_mean(job);
}

// Gathers the numbers of all ranks, rank after rank; every rank gives equally many.
std::vector<int64_t> gather_numbers(Job& job, const std::vector<int64_t>& mine) {
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(job.size));
  std::vector<int64_t> counts(static_cast<size_t>(job.size), static_cast<int64_t>(mine.size()));
  const HostBuffer from(const_cast<int64_t*>(mine.data()), mine.size() * 8),
      to(all.data(), all.size() * 8);
  orr_coll c = job.make(ORR_COLL_ALL_GATHER, ORR_I64);
  c.counts = counts.data(), c.send = from.all(), c.recv = to.all();
  job.post({c});
  return all;
}

// Operations that are posted together, with the buffers and counts that they refer to.
struct Parts {
  std::deque<HostBuffer> buffers;
  std::deque<std::vector<int64_t>> counts;
  std::vector<orr_coll> ops;

  orr_coll& add(const orr_coll& c, const HostTensor& from, const HostTensor& to,
                std::vector<int64_t> sizes) {
    ops.push_back(c);
    ops.back().counts = counts.emplace_back(std::move(sizes)).data();
    ops.back().send = buffers.emplace_back(from).all();
    ops.back().recv = buffers.emplace_back(to).all();
    return ops.back();
  }
};

}  // namespace

orr_coll Job::make(int32_t op, int32_t dtype) const {
  return collective(op, dtype, collective_name(call.kind), where);
}

int32_t redop(const std::string& op) {
  if (op == "sum" || op == "mean") return ORR_RED_SUM;
  if (op == "min") return ORR_RED_MIN;
  if (op == "max") return ORR_RED_MAX;
  if (op == "prod") return ORR_RED_PROD;
  fail(ORR_INVALID, "op is '{}': one of sum, mean, min, max, prod", op);
}

void allreduce(Job& job) { in_place(job, ORR_COLL_ALL_REDUCE, redop(job.call.op)); }
void broadcast(Job& job) { in_place(job, ORR_COLL_BROADCAST, 0); }

void allgather(Job& job) {
  const auto& tensors = job.call.tensors;
  std::vector<int64_t> mine;
  for (const HostTensor& t : tensors) mine.push_back(t.type.dims[0]);
  const std::vector<int64_t> rows = gather_numbers(job, mine);
  Parts parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> counts;
    int64_t sum = 0;
    for (size_t r = 0; r < static_cast<size_t>(job.size); ++r) {
      const int64_t n = rows[r * tensors.size() + i];
      sum += n;
      counts.push_back(n * row_elements(tensors[i].type));
    }
    job.answer.tensors.push_back(with_rows(tensors[i].type, sum));
    parts.add(job.make(ORR_COLL_ALL_GATHER, tensors[i].type.dtype), tensors[i],
              job.answer.tensors.back(), counts);
  }
  job.post(parts.ops);
}

void reduce_scatter(Job& job) {
  Parts parts;
  for (const HostTensor& t : job.call.tensors) {
    std::vector<int64_t> counts;
    for (int r = 0; r < job.size; ++r)
      counts.push_back(t.type.dims[0] / job.size + (r < t.type.dims[0] % job.size));
    job.answer.tensors.push_back(with_rows(t.type, counts[static_cast<size_t>(job.rank)]));
    for (int64_t& n : counts) n *= row_elements(t.type);
    orr_coll c = job.make(ORR_COLL_REDUCE_SCATTER, t.type.dtype);
    c.redop = redop(job.call.op);
    parts.add(c, t, job.answer.tensors.back(), counts);
  }
  job.post(parts.ops);
  finish_mean(job);
}

void alltoall(Job& job) {
  const HostTensor& x = job.call.tensors.front();
  const int64_t row = row_elements(x.type);
  std::vector<int64_t> splits = job.call.splits;
  if (splits.empty()) splits.assign(static_cast<size_t>(job.size), x.type.dims[0] / job.size);
  const std::vector<int64_t> all = gather_numbers(job, splits);
  for (int r = 0; r < job.size; ++r)
    job.answer.splits.push_back(all[static_cast<size_t>(r * job.size + job.rank)]);
  std::vector<int64_t> in = job.answer.splits;
  job.answer.tensors.push_back(
      with_rows(x.type, std::accumulate(in.begin(), in.end(), int64_t{0})));
  for (auto* counts : {&splits, &in})
    for (int64_t& n : *counts) n *= row;
  Parts parts;
  parts.add(job.make(ORR_COLL_ALL_TO_ALL, x.type.dtype), x, job.answer.tensors.back(), splits)
      .recv_counts = in.data();
  job.post(parts.ops);
}

}  // namespace orrery::moves
