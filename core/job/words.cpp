// SPDX-License-Identifier: Apache-2.0
#include "job/words.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <numeric>

#include "base/error.h"
#include "job/agreement.h"
#include "job/host_buffer.h"

namespace orrery {
namespace {

// One word on the lane.
struct Job {
  const WordCall& call;
  WordAnswer& answer;
  int rank, size;
  const WorldComm::Post& post;
  std::string where;

  orr_coll make(int32_t op, int32_t dtype) const {
    return collective(op, dtype, word_name(call.word), where);
  }
};

int32_t redop(const std::string& op) {
  if (op == "sum" || op == "mean") return ORR_RED_SUM;
  if (op == "min") return ORR_RED_MIN;
  if (op == "max") return ORR_RED_MAX;
  if (op == "prod") return ORR_RED_PROD;
  fail(ORR_INVALID, "op is '{}': one of sum, mean, min, max, prod", op);
}

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

// The tensors of each dtype one after another in one buffer, so that a list is as few operations as it
// has dtypes. Every rank goes through the dtypes in their order.
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

HostTensor unflatten(const std::vector<Flat>& flats, const Type& type, std::array<int64_t, ORR_BOOL + 1>& at) {
  const auto flat = std::find_if(flats.begin(), flats.end(), [&](auto& f) { return f.dtype == type.dtype; });
  if (flat != flats.end() && flat->all.type.elements() == type.elements()) return {type, flat->all.bytes};
  HostTensor y = HostTensor::make(type);
  if (y.bytes->empty()) return y;
  int64_t& from = at[static_cast<size_t>(type.dtype)];
  std::copy_n(flat->all.bytes->begin() + from, y.bytes->size(), y.bytes->begin());
  from += static_cast<int64_t>(y.bytes->size());
  return y;
}

// allreduce and broadcast: the same buffer goes in and comes out.
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
  for (const HostTensor& t : job.call.tensors) job.answer.tensors.push_back(unflatten(flats, t.type, at));
  finish_mean(job);
}

void allreduce(Job& job) { in_place(job, ORR_COLL_ALL_REDUCE, redop(job.call.op)); }
void broadcast(Job& job) { in_place(job, ORR_COLL_BROADCAST, 0); }

// Each rank's numbers, as many of every one, by rank.
std::vector<int64_t> gather_numbers(Job& job, const std::vector<int64_t>& mine) {
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(job.size));
  std::vector<int64_t> counts(static_cast<size_t>(job.size), static_cast<int64_t>(mine.size()));
  const HostBuffer from(const_cast<int64_t*>(mine.data()), mine.size() * 8), to(all.data(), all.size() * 8);
  orr_coll c = job.make(ORR_COLL_ALL_GATHER, ORR_I64);
  c.counts = counts.data(), c.send = from.all(), c.recv = to.all();
  job.post({c});
  return all;
}

// The memory of operations that have counts of their own; they are posted together.
struct Parts {
  std::deque<HostBuffer> buffers;
  std::deque<std::vector<int64_t>> counts;
  std::vector<orr_coll> ops;

  orr_coll& add(const orr_coll& c, const HostTensor& from, const HostTensor& to, std::vector<int64_t> sizes) {
    ops.push_back(c);
    ops.back().counts = counts.emplace_back(std::move(sizes)).data();
    ops.back().send = buffers.emplace_back(from).all();
    ops.back().recv = buffers.emplace_back(to).all();
    return ops.back();
  }
};

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
    parts.add(job.make(ORR_COLL_ALL_GATHER, tensors[i].type.dtype), tensors[i], job.answer.tensors.back(), counts);
  }
  job.post(parts.ops);
}

// Rows that do not divide evenly: the first ranks get one more.
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
  for (int r = 0; r < job.size; ++r) job.answer.splits.push_back(all[static_cast<size_t>(r * job.size + job.rank)]);
  std::vector<int64_t> in = job.answer.splits;
  job.answer.tensors.push_back(with_rows(x.type, std::accumulate(in.begin(), in.end(), int64_t{0})));
  for (auto* counts : {&splits, &in})
    for (int64_t& n : *counts) n *= row;
  Parts parts;
  parts.add(job.make(ORR_COLL_ALL_TO_ALL, x.type.dtype), x, job.answer.tensors.back(), splits).recv_counts = in.data();
  job.post(parts.ops);
}

void barrier(Job& job) {
  if (job.call.agreed) job.post({job.make(ORR_COLL_BARRIER, ORR_U8)});  // else to agree is to have met
}

Saying saying_of(const WordCall& call);

// Answers every word of the others with zeros until they have all joined, too.
void join(Job& job) {
  for (Notice mine;;) {
    ++mine.joined;
    const std::vector<Notice> all = agree(job.post, job.size, mine, saying_of(job.call));
    const auto active = std::find_if(all.begin(), all.end(), [](const Notice& n) { return !n.joined; });
    if (active == all.end()) {
      for (int r = 0; r < job.size; ++r)
        if (all[static_cast<size_t>(r)].joined <= all[static_cast<size_t>(job.answer.last)].joined) job.answer.last = r;
      return;
    }
    WordCall zeros{Word::allreduce, {}, "sum", 0, {}, "", job.call.line, job.call.group};
    for (int32_t dtype = ORR_F32; dtype <= ORR_BOOL; ++dtype)
      if (int64_t n = active->counts[dtype]) zeros.tensors.push_back(HostTensor::make({dtype, {n}}));
    WordAnswer unread;
    Job stand_in{zeros, unread, job.rank, job.size, job.post, job.where};
    allreduce(stand_in);
  }
}

// What a word asks of its tensors, and how it is carried out.
struct Row {
  const char* name;
  bool reduces;   // takes op
  bool roots;     // takes root
  bool cuts;      // tensors need a dim 1
  bool own_rows;  // of which ranks may have different extents
  void (*run)(Job&);
};
constexpr Row rows[] = {
    {"allreduce", true, false, false, false, allreduce}, {"broadcast", false, true, false, false, broadcast},
    {"allgather", false, false, true, true, allgather},  {"reduce_scatter", true, false, true, false, reduce_scatter},
    {"alltoall", false, false, true, true, alltoall},    {"barrier", false, false, false, false, barrier},
    {"join", false, false, false, false, join}};
const Row& row_of(Word word) { return rows[static_cast<size_t>(word)]; }

std::string type_text(const Row& row, const Type& type) {
  if (!row.own_rows) return to_string(type);
  std::string text = to_string(Dims(type.dims.begin() + 1, type.dims.end()));
  return fmt::format("{}[*{}{}", dtype_name(type.dtype), text.size() > 2 ? "," : "", text.substr(1));
}

Saying saying_of(const WordCall& call) {
  const Row& row = row_of(call.word);
  std::string text = row.name;
  if (!call.name.empty()) text += fmt::format(" '{}'", call.name);
  const size_t n = call.tensors.size();
  for (size_t i = 0; i < n; ++i)
    text += (i ? ", " : n > 1 ? fmt::format(" of {} tensors ", n) : " of ") + type_text(row, call.tensors[i].type);
  if (row.reduces) text += ", op " + call.op;
  if (row.roots) text += fmt::format(", root {}", call.root);
  return {text, call.line};
}

Notice notice_of(const WordCall& call) {
  Notice n;
  n.stands_in = call.word == Word::barrier ||
                (call.word == Word::allreduce && (call.op == "sum" || call.op == "mean"));
  if (call.word == Word::allreduce)
    for (const HostTensor& t : call.tensors) n.counts[t.type.dtype] += t.type.elements();
  return n;
}

void check_splits(const WordCall& call, int size) {
  const int64_t have = call.tensors.front().type.dims[0];
  if (call.splits.empty() && have % size)
    fail(ORR_INVALID, "alltoall cuts dim 1 of {} into {} equal parts: name the rows of each rank with splits",
         to_string(call.tensors.front().type), size);
  if (call.splits.empty()) return;
  int64_t sum = 0;
  for (int64_t n : call.splits) {
    if (n < 0) fail(ORR_INVALID, "alltoall: splits has {}: a rank gets 0 rows or more", n);
    sum += n;
  }
  if (static_cast<int>(call.splits.size()) != size || sum != have)
    fail(ORR_INVALID, "alltoall: splits has {} numbers with sum {}: it needs one for each of {} ranks, with sum {}",
         call.splits.size(), sum, size, have);
}

void check(const WordCall& call, int size) {
  const Row& row = row_of(call.word);
  if (row.reduces) redop(call.op);
  if (row.roots && (call.root < 0 || call.root >= size))
    fail(ORR_INVALID, "root is {}: ranks are 0..{}", call.root, size - 1);
  for (const HostTensor& t : call.tensors) {
    if (row.cuts && t.type.dims.empty())
      fail(ORR_INVALID, "{} works along dim 1: a scalar has none", row.name);
    if (row.reduces && call.op == "mean" && t.type.dtype != ORR_F32 && t.type.dtype != ORR_F64)
      fail(ORR_INVALID, "a mean over ranks needs f32 or f64, not {}; use op = \"sum\"", dtype_name(t.type.dtype));
  }
  if (call.word == Word::alltoall) check_splits(call, size);
}

void carry_out(const WordCall& call, WordAnswer& answer, int rank, int size, const WorldComm::Post& post) {
  const Saying saying = saying_of(call);
  Job job{call, answer, rank, size, post,
          call.agreed || call.name.empty() ? call.line : fmt::format("{}, named '{}'", call.line, call.name)};
  if (!call.agreed && call.word != Word::join) agree(post, size, notice_of(call), saying);
  row_of(call.word).run(job);
}

// One end of a message; the other end's is the peer's.
void transfer(WorldComm& comm, int32_t op, const HostTensor& x, const Route& route) {
  const char* name = op == ORR_COLL_SEND ? "send" : "recv";
  const int size = comm.size(route.group);
  if (route.peer < 0 || route.peer >= size)
    fail(ORR_INVALID, "{}: rank {} is outside of the {} ranks 0..{}", name, route.peer, size, size - 1);
  if (route.peer == comm.rank(route.group))
    fail(ORR_INVALID, "{}: rank {} is this rank itself: it has the tensor already", name, route.peer);
  const HostBuffer buffer(x);
  orr_coll c = collective(op, x.type.dtype, name, route.line);
  c.root_or_peer = route.peer, c.tag = route.tag, c.count = x.type.elements();
  (op == ORR_COLL_SEND ? c.send : c.recv) = buffer.all();
  comm.wait(comm.submit({c}, route.group));
}

}  // namespace

const char* word_name(Word word) { return row_of(word).name; }

const WordAnswer& PostedWord::wait() const {
  comm_.wait(ticket_);
  return *answer_;
}

PostedWord post(WorldComm& comm, WordCall call) {
  const int rank = comm.rank(call.group), size = comm.size(call.group), group = call.group;
  check(call, size);
  auto answer = std::make_shared<WordAnswer>();
  const auto work = [call = std::move(call), answer, rank, size](const WorldComm::Post& post) {
    carry_out(call, *answer, rank, size, post);
  };
  return {comm, answer, comm.submit(work, group)};
}

void send_word(WorldComm& comm, const HostTensor& x, const Route& to) {
  transfer(comm, ORR_COLL_SEND, x, to);
}

HostTensor recv_word(WorldComm& comm, const Type& type, const Route& from) {
  const HostTensor y = HostTensor::make(type);
  transfer(comm, ORR_COLL_RECV, y, from);
  return y;
}

}  // namespace orrery
