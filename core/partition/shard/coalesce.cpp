// SPDX-License-Identifier: Apache-2.0
//
// Merges small collectives of the update (partition/passes.h). Of two all-reduces that do not need
// one another, a f32[3] and b f32[5], one remains: that of concat(a, b) f32[8], which is split
// again.
#include "partition/passes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "program/build.h"
#include "program/op.h"

namespace orrery {
namespace {

constexpr int64_t kTogether = 1 << 20;  // bytes; beyond, moving takes longer than starting

size_t at(int32_t i) { return static_cast<size_t>(i); }

int64_t bytes_of(const Type& t) { return t.elements() * orr_dtype_bytes(t.dtype); }

bool is_grouped(const Op& op) { return op.exchange().group != kNone; }

bool can_join(const Program& p, const Op& op) {
  static const std::set<std::string> kinds = {"all_reduce", "all_gather", "reduce_scatter",
                                              "all_to_all", "permute",    "broadcast"};
  static const std::set<std::string> plain = {"axis", "origin", "fn", "ranks", "root", "to"};
  return op.phase == Phase::update && !op.comm && kinds.count(op.kind) && op.in.size() == 1 &&
         bytes_of(p.type(op.in[0])) < kTogether &&
         std::all_of(op.attrs.begin(), op.attrs.end(),
                     [](const auto& attr) { return plain.count(attr.first) > 0; });
}

// Sorts the update's ops by level, the number of collectives that an op has to wait for one after
// another. Collectives of one level do not depend on each other.
class Grouper {
 public:
  explicit Grouper(Program& p) : p_(p), ready_(p.values().size()) {}

  void run() {
    while (first_ < p_.ops().size() && !can_join(p_, p_.ops()[first_])) ++first_;
    for (size_t i = first_; i < p_.ops().size(); ++i) {
      if (p_.ops()[i].phase != Phase::update) return;
      place(p_.ops()[i]);
    }
    if (std::any_of(members_.begin(), members_.end(), [](int n) { return n > 1; })) sort();
  }

 private:
  // The group being filled with ops that are alike.
  struct Open {
    std::string kind;
    Attrs attrs;
    int32_t dtype;
    int group = kNone;
    int64_t bytes = 0;
  };
  struct Position {
    int level, group;  // group kNone: the op is in no group, and runs before those of its level
  };

  void place(const Op& op) {
    Position here{0, kNone};
    for (ValueId v : op.in) here.level = std::max(here.level, ready_[at(v)]);
    if (can_join(p_, op)) here.group = group_of(op, here.level);
    for (ValueId v : op.out) ready_[at(v)] = here.level + (here.group != kNone);
    positions_.push_back(here);
  }

  int group_of(const Op& op, int level) {
    const Type& type = p_.type(op.in[0]);
    std::vector<Open>& known = open_[level];
    auto open = std::find_if(known.begin(), known.end(), [&](const Open& o) {
      return o.kind == op.kind && o.dtype == type.dtype && o.attrs == op.attrs;
    });
    if (open == known.end()) open = known.insert(open, {op.kind, op.attrs, type.dtype});
    if (open->group == kNone || open->bytes + bytes_of(type) > kTogether) {
      open->group = static_cast<int>(members_.size()), open->bytes = 0;
      members_.push_back(0);
    }
    open->bytes += bytes_of(type), ++members_[at(open->group)];
    return open->group;
  }

  void sort() {
    std::vector<size_t> order(positions_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const Position &x = positions_[a], &y = positions_[b];
      return std::tie(x.level, x.group) < std::tie(y.level, y.group);
    });
    const std::vector<Op> old(p_.ops().begin() + static_cast<std::ptrdiff_t>(first_),
                              p_.ops().end());
    std::vector<OpId> moved(old.size());
    for (size_t i = 0; i < order.size(); ++i) moved[order[i]] = static_cast<OpId>(first_ + i);
    for (size_t i = 0; i < order.size(); ++i) {
      Op op = old[order[i]];
      if (op.twin != kNone && at(op.twin) >= first_) op.twin = moved[at(op.twin) - first_];
      const int group = positions_[order[i]].group;
      if (group != kNone && members_[at(group)] > 1) op.set_exchange({.group = group});
      for (ValueId v : op.out) p_.mutable_value(v).producer = static_cast<OpId>(first_ + i);
      p_.mutable_ops()[first_ + i] = std::move(op);
    }
  }

  Program& p_;
  size_t first_ = 0;  // the first op that can join a group
  std::vector<int> ready_;
  std::vector<Position> positions_;        // by op, from the first on
  std::map<int, std::vector<Open>> open_;  // by level
  std::vector<int> members_;               // how many, by group
};

class Merger {
 public:
  explicit Merger(const Program& p) : from_(p), to_(p) { to_.mutable_ops().clear(); }

  Program run() {
    for (const Op& op : from_.ops()) {
      if (is_exchange(op.kind) || reads_waiting(op)) {
        const bool joins =
            is_grouped(op) && !waiting_.empty() && op.comm->group == group() && !reads_waiting(op);
        if (!joins) flush();
      }
      if (is_grouped(op))
        waiting_.push_back(op);
      else
        to_.append(op);
    }
    flush();
    return std::move(to_);
  }

 private:
  int32_t group() const { return waiting_.front().comm->group; }

  bool reads_waiting(const Op& op) const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const Op& member) {
      return std::count(op.in.begin(), op.in.end(), member.out[0]) > 0;
    });
  }

  void flush() {
    std::vector<Op> members = std::move(waiting_);
    waiting_.clear();
    for (Op& op : members) op.comm = nullptr;
    if (members.size() == 1) to_.append(members[0]);
    if (members.size() > 1) merge(members);
  }

  // x as a matrix with one row for each rank (`rows`), or flat.
  ValueId as_rows(ValueId x, bool rows) {
    const Dims& dims = from_.type(x).dims;
    const int64_t n = from_.type(x).elements();
    return build::reshape(to_, x, rows ? Dims{dims[0], n / dims[0]} : Dims{n});
  }

  void merge(const std::vector<Op>& members) {
    Op all = members[0];
    to_.set_phase(all.phase), to_.set_site(all.site);
    const bool rows_in = all.kind == "reduce_scatter" || all.kind == "all_to_all";
    const bool rows_out = all.kind == "all_gather" || all.kind == "all_to_all";
    std::vector<ValueId> parts;
    Dims sizes;
    for (const Op& op : members) {
      parts.push_back(as_rows(op.in[0], rows_in));
      const Type& out = from_.type(op.out[0]);
      sizes.push_back(rows_out ? out.elements() / out.dims[0] : out.elements());
    }
    all.in = {build::concat(to_, parts, rows_in)}, all.out.clear(), all.twin = kNone;
    to_.append(std::move(all));
    const std::vector<ValueId> made = build::split(to_, to_.ops().back().out[0], rows_out, sizes);
    for (size_t i = 0; i < members.size(); ++i) {
      Op back;
      back.kind = "reshape", back.in = {made[i]}, back.out = members[i].out;
      back.attrs.set("dims", from_.type(members[i].out[0]).dims);
      back.phase = members[i].phase, back.site = members[i].site;
      to_.append(std::move(back));
    }
  }

  const Program& from_;
  Program to_;
  std::vector<Op> waiting_;  // collectives of one group
};

}  // namespace

void group_collectives(Program& p) { Grouper(p).run(); }

void merge_groups(Program& p) {
  if (std::any_of(p.ops().begin(), p.ops().end(), is_grouped)) p = Merger(p).run();
}

}  // namespace orrery
