// SPDX-License-Identifier: Apache-2.0
#include "side_by_side.h"

#include <orrery/ops.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/lower.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/elements.h"
#include "program/state.h"

namespace program_test {

using namespace orrery;

namespace {

std::byte* host(const orr_buffer& b) { return static_cast<std::byte*>(b.memory->host) + b.offset; }

size_t bytes_of(const Exchange& e, int64_t count) {
  return static_cast<size_t>(count * orr_dtype_bytes(e.dtype));
}

// a = a op b, element by element, rounded as kernels and backends do.
void join(const Exchange& e, Bytes& a, const Bytes& b) {
  const size_t width = static_cast<size_t>(orr_dtype_bytes(e.dtype));
  for (size_t i = 0; i < a.size(); i += width) {
    const double x = read_element(e.dtype, &a[i]), y = read_element(e.dtype, &b[i]);
    double sum = e.dtype == ORR_F64 ? x + y : double(float(x) + float(y));
    if (e.dtype == ORR_I64 || e.dtype == ORR_I32) sum = x + y;
    write_element(e.dtype, &a[i],
                  e.redop == ORR_RED_MAX   ? std::max(x, y)
                  : e.redop == ORR_RED_MIN ? std::min(x, y)
                                           : sum);
  }
}

// The tree over the leaves, of which every rank brings the nodes that its own complete.
class Tree {
 public:
  explicit Tree(const Exchange& e) : e_(e), total_(e.leaf_first.back()) {}

  void add(size_t rank, const std::byte* from) {
    int64_t at = e_.leaf_first[rank], hi = e_.leaf_first[rank + 1], first = at;
    while (int64_t n = orr_tree_node(&at, hi, total_)) {
      nodes_[{first, n}] = Bytes(from, from + bytes_of(e_, e_.count));
      from += bytes_of(e_, e_.count), first = at;
    }
  }
  Bytes whole() const { return node(0, total_); }

 private:
  Bytes node(int64_t first, int64_t n) const {
    if (auto found = nodes_.find({first, n}); found != nodes_.end()) return found->second;
    if (n <= 1) fail(ORR_FAILED, "{}: leaf {} is in no node", e_.name, first);
    int64_t left = 1;
    while (left * 2 < n) left *= 2;
    Bytes a = node(first, left);
    join(e_, a, node(first + left, n - left));
    return a;
  }

  const Exchange& e_;
  int64_t total_;
  std::map<std::pair<int64_t, int64_t>, Bytes> nodes_;
};

bool is_paired(const Exchange& e) { return e.op == ORR_COLL_SEND || e.op == ORR_COLL_RECV; }

}  // namespace

void SideBySide::Block::allocate(uint64_t n) {
  bytes.assign(n + 64, std::byte{0x7f});  // huge numbers: what is read before it is written shows
  memory.size = sizeof memory, memory.tier = ORR_TIER_HOST, memory.bytes = n;
  memory.host = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(bytes.data()) + 63) & ~63ull);
  memory.native = memory.host;
}

SideBySide::SideBySide(const Program& logical, const Mesh& mesh, int64_t microbatches,
                       const std::vector<std::string>& kernels)
    : ranks_(static_cast<size_t>(mesh.world)), batch_(logical.batch_size()) {
  for (int r = 0; r < mesh.world; ++r) {
    Rank& rank = ranks_[static_cast<size_t>(r)];
    rank.plan = lower({&logical, &mesh, microbatches, r, kernels});
    prepare(rank);
  }
}

SideBySide::~SideBySide() {
  for (Rank& rank : ranks_)
    for (Prepared& p : rank.prepared)
      if (p.kernel) p.api->release(p.api->self, p.kernel);
}

void SideBySide::hold_states(Rank& rank) {
  auto block = [&](uint64_t bytes) {
    rank.blocks.push_back(std::make_unique<Block>());
    rank.blocks.back()->allocate(bytes);
    return &rank.blocks.back()->memory;
  };
  for (const FlatBuffer& row : rank.plan.local.flat_buffers) {
    const orr_memory* memory = block(std::max(row.room, row.bytes));
    for (size_t i = 0; i < row.states.size(); ++i)
      rank.states[row.states[i].get()] = {memory, row.offsets[i], 0};
  }
  for (const StatePart& held : rank.plan.local.parts) {
    const State& s = *held.state;
    auto [at, fresh] = rank.states.try_emplace(&s);
    const uint64_t bytes = held.part.type(s.type).bytes();
    if (fresh) at->second = {block(bytes), 0, 0};
    at->second.bytes = bytes;
    HostTensor whole =
        s.initial.kind == Initial::data ? s.initial.tensor : HostTensor::make(s.type);
    take_part(whole, held.part, host(at->second));
  }
}

Bound SideBySide::bound(const Rank& rank, const Place& at) const {
  if (at.storage == kNone) return {};
  const Storage& s = rank.plan.storage(at.storage);
  orr_buffer base{s.region == Region::comm ? &rank.comm.memory : &rank.arena.memory, s.offset, 0};
  if (s.region == Region::state) base = rank.states.at(s.state.get());
  const uint64_t offset = base.offset + at.offset;
  return {{base.memory, offset, base.memory->bytes - offset}, s.bytes, s.slots, s.by};
}

void SideBySide::prepare(Rank& rank) {
  rank.arena.allocate(rank.plan.arena_bytes), rank.comm.allocate(rank.plan.comm_bytes);
  hold_states(rank);
  for (const Launch& launch : rank.plan.launches) {
    Prepared p;
    p.api = &Registry::get().kernel(rank.plan.kernel_names[static_cast<size_t>(launch.kernels)]);
    AbiOp op(launch);
    check(p.api->prepare(p.api->self, op.get(), &p.kernel), launch.op.kind);
    p.n_in = launch.in_at.size(), p.n_out = launch.out_at.size();
    for (const Place& x : launch.in_at) p.bound.push_back(bound(rank, x));
    for (const Place& x : launch.out_at) p.bound.push_back(bound(rank, x));
    if (launch.workspace != kNone) p.bound.push_back(bound(rank, {launch.workspace, 0, {}}));
    rank.prepared.push_back(std::move(p));
  }
}

std::byte* SideBySide::address(const Rank& rank, ValueId v) const {
  const Place& at = rank.plan.places[static_cast<size_t>(v)];
  if (at.storage == kNone || rank.plan.storage(at.storage).alive.empty()) return nullptr;
  return host(bound(rank, at).first);
}

// Rows behind the last sample hold it again.
void SideBySide::fill(Rank& rank, const Named& fields, const Named& scalars) const {
  const Program& p = rank.plan.local.program;
  const Microbatches& microbatches = rank.plan.local.microbatches;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    std::byte* to =
        v.producer == kNone && !v.state ? address(rank, static_cast<ValueId>(i)) : nullptr;
    if (!to) continue;
    const int64_t width = orr_dtype_bytes(v.type.dtype);
    auto put = [&](int64_t k, double x) { write_element(v.type.dtype, to + k * width, x); };
    if (v.name == "$row") {
      for (int64_t s = 0; s < microbatches.calls(); ++s)
        put(s, static_cast<double>(microbatches.first_row() + s * microbatches.rows));
    } else if (v.role == Role::scalar) {
      put(0, scalars.at(v.name).at(0));
    } else if (v.role == Role::whole_batch) {
      for (int64_t k = 0; k < v.type.elements(); ++k)
        put(k, fields.at(v.name).at(static_cast<size_t>(k)));
    } else if (v.role == Role::batch) {
      const int64_t rows = microbatches.in_shapes() * microbatches.rows,
                    each = v.type.elements() * microbatches.calls() / rows;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < each; ++k) {
          const int64_t sample = std::min(microbatches.first_row() + r, batch_ - 1);
          put(r * each + k, v.name == "$weight"
                                ? double(microbatches.first_row() + r < batch_)
                                : fields.at(v.name).at(static_cast<size_t>(sample * each + k)));
        }
    }
  }
}

// Whether it moved; it stands at the end, or at a wait for an exchange that is not done.
bool SideBySide::advance(Rank& rank) {
  const size_t before = rank.at;
  for (; rank.at < rank.plan.schedule.size(); ++rank.at) {
    const Step& s = rank.plan.schedule[rank.at];
    if (s.kind == Step::launch) {
      Prepared& p = rank.prepared[static_cast<size_t>(s.index)];
      std::vector<orr_buffer> now;
      for (const Bound& b : p.bound) now.push_back(b.at(s));
      const orr_buffer *in = now.data(), *out = in + p.n_in, *workspace = out + p.n_out;
      const Launch& launch = rank.plan.launches[static_cast<size_t>(s.index)];
      check(p.api->launch(p.kernel, nullptr, in, out,
                          launch.workspace != kNone ? workspace : nullptr),
            launch.op.site.prefix() + launch.op.kind);
    } else if (s.kind == Step::post) {
      const Exchange& e = rank.plan.exchanges[static_cast<size_t>(s.index)];
      if (e.is_copy()) fail(ORR_FAILED, "{} is beyond this model", e.name);
      rank.done[{s.index, s.microbatch}] = false;
      rank.posted[e.axis].push_back(
          {s.index, s.microbatch, bound(rank, e.send).at(s), bound(rank, e.recv).at(s)});
    } else if (!rank.done.at({s.index, s.microbatch})) {
      break;
    }
  }
  return rank.at != before;
}

void SideBySide::finish(Rank& rank, const std::string& axis, size_t index) {
  std::deque<Post>& posts = rank.posted[axis];
  rank.done[{posts[index].exchange, posts[index].microbatch}] = true;
  posts.erase(posts.begin() + static_cast<long>(index));
}

bool SideBySide::exchange() {
  std::set<std::string> axes;
  for (Rank& rank : ranks_)
    for (auto& [axis, posts] : rank.posted) axes.insert(axis);
  bool moved = false;
  for (const std::string& axis : axes) {
    std::map<std::vector<int>, std::vector<size_t>> groups;  // by the ranks that take part
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Mesh& mesh = ranks_[r].plan.mesh;
      std::vector<int> members;
      for (int c = 0; c < mesh.size_of(axis); ++c)
        members.push_back(mesh.peer(axis, c, static_cast<int>(r)));
      groups[members].push_back(r);
    }
    for (auto& [members, group] : groups) moved = exchange_on(axis, group) || moved;
  }
  return moved;
}

bool SideBySide::exchange_on(const std::string& axis, const std::vector<size_t>& group) {
  bool moved = deliver(axis, group);
  for (;;) {
    std::vector<Post> posts;
    std::vector<size_t> at;
    for (size_t r : group) {
      const std::deque<Post>& own = ranks_[r].posted[axis];
      auto first = std::find_if(own.begin(), own.end(), [&](const Post& p) {
        return !is_paired(ranks_[r].plan.exchanges[static_cast<size_t>(p.exchange)]);
      });
      if (first == own.end()) return moved;
      posts.push_back(*first), at.push_back(static_cast<size_t>(first - own.begin()));
    }
    collect(group, posts);
    for (size_t i = 0; i < group.size(); ++i) finish(ranks_[group[i]], axis, at[i]);
    moved = true;
  }
}

// Messages meet by sender, receiver and tag, in order.
bool SideBySide::deliver(const std::string& axis, const std::vector<size_t>& group) {
  for (size_t from = 0; from < group.size(); ++from)
    for (size_t to = 0; to < group.size(); ++to) {
      Rank &sender = ranks_[group[from]], &receiver = ranks_[group[to]];
      std::deque<Post>&sent = sender.posted[axis], &wanted = receiver.posted[axis];
      for (size_t i = 0; i < sent.size(); ++i)
        for (size_t k = 0; k < wanted.size(); ++k) {
          const Exchange &s = sender.plan.exchanges[static_cast<size_t>(sent[i].exchange)],
                         &w = receiver.plan.exchanges[static_cast<size_t>(wanted[k].exchange)];
          if (s.op != ORR_COLL_SEND || w.op != ORR_COLL_RECV || s.tag != w.tag ||
              s.root_or_peer != static_cast<int>(to) || w.root_or_peer != static_cast<int>(from) ||
              sent[i].microbatch != wanted[k].microbatch)
            continue;
          std::memcpy(host(wanted[k].recv), host(sent[i].send), bytes_of(s, s.count));
          finish(sender, axis, i), finish(receiver, axis, k);
          deliver(axis, group);
          return true;
        }
    }
  return false;
}

void SideBySide::collect(const std::vector<size_t>& group, const std::vector<Post>& posts) {
  auto exchange = [&](size_t i) -> const Exchange& {
    return ranks_[group[i]].plan.exchanges[static_cast<size_t>(posts[i].exchange)];
  };
  const Exchange& e = exchange(0);
  for (size_t i = 1; i < group.size(); ++i)
    if (exchange(i).op != e.op || exchange(i).count != e.count || exchange(i).dtype != e.dtype)
      fail(ORR_FAILED, "ranks differ: '{}' of {} elements and '{}' of {}", e.name, e.count,
           exchange(i).name, exchange(i).count);
  auto given = [&](size_t i, int64_t n) {
    return n ? Bytes(host(posts[i].send), host(posts[i].send) + bytes_of(e, n)) : Bytes();
  };
  auto take = [&](size_t i, const Bytes& all, int64_t begin, int64_t n) {
    if (n) std::memcpy(host(posts[i].recv), all.data() + bytes_of(e, begin), bytes_of(e, n));
  };
  Bytes all;
  if (e.op == ORR_COLL_TREE_ALL_REDUCE || e.op == ORR_COLL_TREE_REDUCE_SCATTER) {
    Tree tree(e);
    for (size_t i = 0; i < group.size(); ++i) tree.add(i, host(posts[i].send));
    all = tree.whole();
    for (size_t i = 0; i < group.size(); ++i)
      e.begins.empty() ? take(i, all, 0, e.count) : take(i, all, e.begins[i], e.counts[i]);
  } else if (e.op == ORR_COLL_ALL_GATHER) {
    for (size_t i = 0; i < group.size(); ++i) {
      const Bytes own = given(i, e.counts[i]);
      all.insert(all.end(), own.begin(), own.end());
    }
    for (size_t i = 0; i < group.size(); ++i)
      take(i, all, 0, static_cast<int64_t>(all.size()) / orr_dtype_bytes(e.dtype));
  } else if (e.op == ORR_COLL_ALL_REDUCE) {
    all = given(0, e.count);
    for (size_t i = 1; i < group.size(); ++i) join(e, all, given(i, e.count));
    for (size_t i = 0; i < group.size(); ++i) take(i, all, 0, e.count);
  } else {
    fail(ORR_FAILED, "{}: operation {} is beyond this model", e.name, e.op);
  }
}

std::map<std::string, Bytes> SideBySide::step(const Named& fields, const Named& scalars) {
  for (Rank& rank : ranks_) {
    rank.at = 0, rank.done.clear();
    fill(rank, fields, scalars);
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Rank& rank : ranks_) moved = advance(rank) || moved;
    moved = exchange() || moved;
  }
  for (Rank& rank : ranks_)
    if (rank.at < rank.plan.schedule.size()) fail(ORR_FAILED, "a rank waits for ever");
  return outputs();
}

std::map<std::string, Bytes> SideBySide::outputs() const {
  std::map<std::string, Bytes> found;
  for (const Rank& rank : ranks_)
    for (auto& [name, id] : rank.plan.local.program.outputs()) {
      const std::byte* from = address(rank, id);
      if (!from) fail(ORR_FAILED, "output '{}' lies nowhere", name);
      const Bytes mine(from, from + rank.plan.local.program.type(id).bytes());
      if (found.emplace(name, mine).first->second != mine)
        fail(ORR_FAILED, "the ranks' '{}' differ", name);
    }
  return found;
}

Bytes SideBySide::state(const std::string& name) const {
  HostTensor whole;
  std::vector<char> known;
  for (const Rank& rank : ranks_)
    for (const StatePart& held : rank.plan.local.parts) {
      if (held.state->name != name) continue;
      const Type& type = held.state->type;
      const size_t width = static_cast<size_t>(orr_dtype_bytes(type.dtype));
      if (!whole.bytes) whole = HostTensor::make(type), known.assign(whole.bytes->size(), 0);
      HostTensor here = HostTensor::make(type), mark = HostTensor::make(type);
      put_part(here, held.part, host(rank.states.at(held.state.get())));
      put_part(mark, held.part, Bytes(mark.bytes->size(), std::byte{1}).data());
      for (size_t i = 0; i < here.bytes->size(); i += width) {
        if ((*mark.bytes)[i] != std::byte{1}) continue;
        if (known[i] && std::memcmp(&(*whole.bytes)[i], &(*here.bytes)[i], width))
          fail(ORR_FAILED, "the ranks' copies of '{}' differ", name);
        std::memcpy(&(*whole.bytes)[i], &(*here.bytes)[i], width);
        known[i] = 1;
      }
    }
  if (!whole.bytes) fail(ORR_FAILED, "no rank holds '{}'", name);
  return *whole.bytes;
}

}  // namespace program_test
