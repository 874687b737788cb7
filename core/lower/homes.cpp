// SPDX-License-Identifier: Apache-2.0
#include "lower/homes.h"

#include <algorithm>

#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

class HomeFinder {
 public:
  HomeFinder(const LocalProgram& local, const std::vector<int>& last_read)
      : local_(local), p_(local.program), last_read_(last_read) {
    for (auto& [state, next] : p_.updates()) old_[p_.value(state).state.get()] = state;
  }

  std::map<OpId, Home> run() const {
    std::map<OpId, Home> homes;
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      if (!op.attrs.count("home")) continue;
      for (size_t r = 0; r < local_.neighbours.size(); ++r)
        if (local_.neighbours[r].states.front()->name == attr_text(op.attrs, "home", "") &&
            is_free(op, static_cast<int>(i), local_.neighbours[r]))
          homes[static_cast<OpId>(i)] = {r, offset_of(op)};
    }
    return homes;
  }

 private:
  static uint64_t sum(const Dims& counts, size_t n) {
    uint64_t all = 0;
    for (size_t i = 0; i < n; ++i) all += static_cast<uint64_t>(counts[i]);
    return all;
  }
  uint64_t offset_of(const Op& gather) const {
    return sum(attr_ints(gather.attrs, "counts"),
               static_cast<size_t>(attr_int(gather.attrs, "me", 0))) *
           static_cast<uint64_t>(orr_dtype_bytes(p_.type(gather.out[0]).dtype));
  }

  int last_read(const State* s) const {
    auto old = old_.find(s);
    return old == old_.end() ? kNone : last_read_[static_cast<size_t>(old->second)];
  }

  // The op that writes a part, through its views.
  OpId maker(ValueId v) const {
    OpId op = p_.value(v).producer;
    while (op != kNone && p_.ops()[static_cast<size_t>(op)].kind == "reshape")
      op = p_.value(p_.ops()[static_cast<size_t>(op)].in[0]).producer;
    return op;
  }

  bool is_free(const Op& gather, int index, const Neighbours& row) const {
    if (p_.type(gather.out[0]).bytes() != row.bytes) return false;
    for (auto& s : row.states)
      if (last_read(s.get()) >= index) return false;
    if (gather.in.empty()) return true;
    OpId last = p_.value(gather.in[0]).producer;
    bool several = last != kNone && p_.ops()[static_cast<size_t>(last)].kind == "concat";
    const std::vector<ValueId> parts = several ? p_.ops()[static_cast<size_t>(last)].in : gather.in;
    uint64_t at = offset_of(gather);
    for (ValueId part : parts) {
      if (!may_write(maker(part), at, at + p_.type(part).bytes(), row)) return false;
      at += p_.type(part).bytes();
    }
    return true;
  }

  // Elementwise ops may read what they replace.
  bool may_write(OpId op, uint64_t begin, uint64_t end, const Neighbours& row) const {
    if (op == kNone) return false;
    bool elementwise = p_.ops()[static_cast<size_t>(op)].kind == "pointwise";
    for (size_t i = 0; i < row.states.size(); ++i) {
      uint64_t next = i + 1 < row.states.size() ? row.offsets[i + 1] : row.bytes;
      if (row.offsets[i] >= end || next <= begin) continue;
      int last = last_read(row.states[i].get());
      if (last > op || (last == op && !elementwise)) return false;
    }
    return true;
  }

  const LocalProgram& local_;
  const Program& p_;
  const std::vector<int>& last_read_;
  std::map<const State*, ValueId> old_;
};

}  // namespace

std::map<OpId, Home> find_homes(const LocalProgram& local, const std::vector<int>& last_read) {
  return HomeFinder(local, last_read).run();
}

}  // namespace orrery
