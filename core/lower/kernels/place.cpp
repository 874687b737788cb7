// SPDX-License-Identifier: Apache-2.0
//
// Gives every value a place, and makes launches and exchanges of the ops. Shape ops become views,
// parts of a concat are written straight into it, and updates are written over the state that they
// replace. Copies are added where a kernel needs contiguous tensors.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "lower/kernels/launcher.h"
#include "lower/kernels/padded_rows.h"
#include "lower/kernels/row_places.h"
#include "lower/kernels/uses.h"
#include "lower/lower.h"
#include "lower/wholes.h"
#include "program/strided.h"

namespace orrery {
namespace {

// As a transpose or windows see x.
Strided seen(const Strided& x, const Op& op) {
  return op.kind == "transpose" ? transposed(x, attr_ints(op.attrs, "perm"))
                                : windows_of(x, op.attrs);
}

// The part of `whole` that has these dims and begins at index `begin` of the op's dim. Moves
// `begin` to the end of the part.
Place next_part(const Place& whole, const Op& op, const Dims& dims, int64_t& begin) {
  const auto dim = static_cast<size_t>(attr_int(op.attrs, "dim", 0));
  Place part = whole;
  part.offset += static_cast<uint64_t>(begin * whole.layout.strides[dim] *
                                       orr_dtype_bytes(whole.layout.dtype));
  part.layout.dims = dims;
  begin += dims[dim];
  return part;
}

class Placer {
 public:
  explicit Placer(RankPlan& plan)
      : plan_(plan),
        p_(plan.local.program),
        wholes_(names_of_wholes(p_)),
        launcher_(plan),
        uses_(plan) {
    plan_.places.assign(p_.values().size(), {});
    is_total_.resize(p_.values().size());
    one_by_one_ = plan_.local.microbatches.one_by_one;
    added_ = one_by_one_ && plan_.mesh.fast_sums;
    for (const Total& t : plan_.local.totals) {  // one by one: each microbatch is a node of its own
      nodes_[t.partial] = one_by_one_ ? 1 : t.nodes;
      if (nodes_[t.partial] == 1 && !t.is_cut() && !added_) same_[t.whole] = t.partial;
      is_total_[at(t.whole)] = true;
    }
  }

  void run() {
    bool split = std::any_of(plan_.actions.begin(), plan_.actions.end(),
                             [](const Action& c) { return c.segment == Segment::weight; });
    plan_.segments = segments_of(p_, one_by_one_ || plan_.local.microbatches.idle(), split);
    for (size_t i = 0; i < p_.values().size(); ++i)
      if (p_.values()[i].producer == kNone) place_input(static_cast<ValueId>(i));
    reserve_rows();
    reserve_concats();
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      launcher_.at(plan_.segments[i], p_.ops()[i].stage);
      place_op(i);
    }
    for (auto& [state, next] : p_.updates()) finish_update(state, next);
    for (auto& [whole, partial] : same_) place(whole);  // results that no op reads
  }

 private:
  struct Inside {
    ValueId into;
    uint64_t offset;
    Strided view;
  };

  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  Place& place(ValueId v) {
    Place& here = plan_.places[at(v)];
    if (here.storage == kNone)
      if (auto alias = same_.find(v); alias != same_.end()) here = place(alias->second);
    return here;
  }

  void place_input(ValueId v) {
    const Value& value = p_.value(v);
    if (same_.count(v)) return;  // a total that lies where its partial does
    Place& at = plan_.places[static_cast<size_t>(v)];
    at.layout = Strided::contiguous(value.type);
    const bool total = is_total_[static_cast<size_t>(v)];
    bool per_microbatch = value.role == Role::batch || value.name == "$row";
    launcher_.at(per_microbatch ? Segment::forward : Segment::update, 0);
    if (value.state && rows_.has(value.state.get())) {
      at = rows_.place(value.state.get(), at.layout);
      return;
    }
    at.storage = launcher_.new_storage(value.type.bytes(), total ? "gradient" : "input");
    if (per_microbatch) plan_.storages.back().slots = plan_.local.microbatches.calls();
    if (value.state) belong(plan_.storages.back(), value);
  }

  static void belong(Storage& s, const Value& value) {
    s.region = Region::state, s.state = value.state, s.tier = value.tier;
    s.category = category_of(*value.state);
  }

  std::string category(ValueId v) const {
    if (const char* whole = wholes_[at(v)]) return whole;
    if (nodes_.count(v) && !added_) return "gradient";
    return p_.value(v).type.dims.empty() ? "metric" : "activation";
  }

  // Has values that only a concat reads, and that one op makes alone, written straight into it.
  // Such a value may be a concat in turn, which comes before the one that reads it.
  void reserve_concats() {
    for (size_t i = p_.ops().size(); i-- > 0;) {
      const Op& op = p_.ops()[i];
      if (op.kind != "concat") continue;
      const auto inside = wanted_.find(op.out[0]);
      const Place whole{
          kNone, 0,
          inside == wanted_.end() ? Strided::contiguous(p_.type(op.out[0])) : inside->second.view};
      int64_t begin = 0;
      for (ValueId v : op.in) {
        const Place part = next_part(whole, op, p_.type(v).dims, begin);
        reserve(v, {op.out[0], part.offset, part.layout});
      }
    }
  }

  // Places the results of gatherings over the old values of states where that is possible
  // (row_places.h); the pieces are then computed there as well.
  void reserve_rows() {
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      const Op& op = p_.ops()[i];
      if (op.exchange().row.empty()) continue;
      const auto own = rows_.place_in_row(static_cast<OpId>(i));
      if (!own) continue;
      preplace(op.out[0], own->storage, 0);
      if (op.in.empty()) continue;
      OpId maker = p_.value(op.in[0]).producer;
      if (p_.ops()[static_cast<size_t>(maker)].kind == "concat")
        preplace(op.in[0], own->storage, own->offset);
      else
        reserve(op.in[0], {op.out[0], own->offset, Strided::contiguous(p_.type(op.in[0]))});
    }
  }

  void preplace(ValueId v, int storage, uint64_t offset) {
    plan_.places[static_cast<size_t>(v)] = {storage, offset, Strided::contiguous(p_.type(v))};
  }

  // Has `part` written inside another value, if nothing else reads it and one op makes it, perhaps
  // in other dims.
  void reserve(ValueId part, Inside where) {
    OpId maker = p_.value(part).producer;
    if (maker == kNone || uses_.readers[at(part)].size() != 1 || nodes_.count(part) ||
        uses_.is_update(part))
      return;
    const Op& op = p_.ops()[static_cast<size_t>(maker)];
    if (op.kind == "reshape" && where.view.is_contiguous())
      return reserve(op.in[0], {where.into, where.offset, Strided::contiguous(p_.type(op.in[0]))});
    if (op.kind == "transpose") {
      const Dims back = inverse(attr_ints(op.attrs, "perm"));
      return reserve(op.in[0], {where.into, where.offset, transposed(where.view, back)});
    }
    if (!is_exchange(op.kind) && !is_view(op.kind)) wanted_[part] = where;
  }

  void place_op(size_t i) {
    const Op& op = p_.ops()[i];
    for (ValueId v : op.in)
      if (place(v).storage == kNone)
        fail(ORR_FAILED, "{}{}: the program is out of order: it reads what is made later",
             op.site.prefix(), op.kind);
    if (is_view(op.kind) && place_view(op)) return;
    if (is_view(op.kind)) return copy_view(op, static_cast<int>(i));
    if (op.kind == "concat") return place_concat(op);
    if (is_exchange(op.kind)) return place_exchange(op, static_cast<int>(i));
    if (op.kind == "scatter_add" && op.in.size() == 3) add_in_place(op);
    if (op.kind == "cross_entropy" && op.out.size() == 3)
      write_over(op.in[0], op.out[2], static_cast<int>(i));
    if (op.kind == "update_slice" && place(op.in[0]).layout.is_contiguous() &&
        uses_.may_write_into(op))
      write_over(op.in[0], op.out[0], static_cast<int>(i));
    std::vector<Place> in, out;
    in.reserve(op.in.size()), out.reserve(op.out.size());
    for (ValueId v : op.in) in.push_back(place(v));
    for (ValueId v : op.out) out.push_back(output_place(v, static_cast<int>(i)));
    launcher_.add(op, std::move(in), out);
  }

  // Lets a scatter_add add the rows to its base in place, if nothing else reads the base.
  void add_in_place(const Op& op) {
    if (uses_.is_update(op.out[0]) || uses_.readers[at(op.in[2])].size() != 1) return;
    const Place& base = place(op.in[2]);
    if (plan_.storage(base.storage).region != Region::state && base.layout.is_contiguous())
      plan_.places[static_cast<size_t>(op.out[0])] = base;
  }

  // Whether v is read or kept by others than the op, as itself or as what it is a view of.
  bool outlives(ValueId v, int op) const {
    if (uses_.last_read[at(v)] > op || uses_.is_result(v) || nodes_.count(v) || wanted_.count(v) ||
        uses_.is_update(v))
      return true;
    const OpId maker = p_.value(v).producer;
    if (maker == kNone) return true;
    const Op& made_by = p_.ops()[static_cast<size_t>(maker)];
    return is_view(made_by.kind) && outlives(made_by.in[0], op);
  }

  // Lets a result of an op lie where its input did: the gradient of a loss where the logits did, a
  // tensor where it was before a part of it was replaced.
  void write_over(ValueId input, ValueId result, int index) {
    if (uses_.is_result(result) || nodes_.count(result) || wanted_.count(result) ||
        uses_.is_update(result))
      return;
    if (!outlives(input, index)) plan_.places[at(result)] = place(input);
  }

  // The place where an op writes v: inside a concat, over the state that it replaces, or in a new
  // storage.
  Place output_place(ValueId v, int op_index) {
    Place& at = plan_.places[static_cast<size_t>(v)];
    if (at.storage != kNone) return at;
    at.layout = Strided::contiguous(p_.type(v));
    if (wanted_.count(v)) {
      at = place_inside(wanted_.at(v));
    } else if (auto s = uses_.next_state.find(v);
               s != uses_.next_state.end() && uses_.may_replace(s->second, op_index)) {
      at = place(s->second);
    } else {
      at.layout = free_layout(v, p_.ops()[static_cast<size_t>(op_index)]);
      uint64_t nodes = nodes_.count(v) ? static_cast<uint64_t>(nodes_[v]) : 1;
      at.storage = launcher_.new_storage(bytes_of(at.layout) * nodes, category(v));
      plan_.storage(at.storage).padded = bytes_of(at.layout) > p_.type(v).bytes();
    }
    return at;
  }

  // The layout of what an op makes where nothing else says how it lies.
  Strided free_layout(ValueId v, const Op& op) {
    const Strided rows = padded_.layout_of(v, op);
    if (!rows.is_contiguous() || nodes_.count(v) || uses_.is_result(v)) return rows;
    std::vector<Strided> in;
    for (ValueId x : op.in) in.push_back(place(x).layout);
    if (op.kind == "pointwise") {
      const Strided like = layout_like(op.expr, in, p_.type(v));
      return uses_.only_copied(v, like) ? rows : like;
    }
    if (op.kind != "matmul") return rows;
    const Strided read = uses_.as_read(v);
    return !read.is_contiguous() && launcher_.writes(op, in, read) ? read : rows;
  }

  Place& concat_place(ValueId v) {
    Place& at = plan_.places[static_cast<size_t>(v)];
    if (at.storage == kNone && wanted_.count(v)) {
      at = place_inside(wanted_.at(v));
    } else if (at.storage == kNone) {
      at.layout = Strided::contiguous(p_.type(v));
      at.storage = launcher_.new_storage(p_.type(v).bytes(), category(v));
    }
    return at;
  }
  Place place_inside(const Inside& where) {
    const Place& whole = concat_place(where.into);
    return {whole.storage, whole.offset + where.offset, where.view};
  }

  // A concat of states that lie one after another, and are not replaced before, needs no copy:
  // their memory is its result.
  bool place_row(const Op& op) {
    Place all = place(op.in[0]);
    if (!uses_.may_be_row(op) || all.storage == kNone ||
        plan_.storage(all.storage).region != Region::state)
      return false;
    uint64_t end = all.offset;
    for (ValueId part : op.in) {
      const Place& at = place(part);
      if (at.storage != all.storage || at.offset != end || at.layout.dims.size() != 1) return false;
      end += p_.type(part).bytes();
    }
    plan_.places[static_cast<size_t>(op.out[0])] = {all.storage, all.offset,
                                                    Strided::contiguous(p_.type(op.out[0]))};
    return true;
  }

  void place_concat(const Op& op) {
    if (place_row(op)) return;
    const Place whole = concat_place(op.out[0]);
    int64_t begin = 0;
    for (ValueId v : op.in) {
      const Place to = next_part(whole, op, p_.type(v).dims, begin);
      if (!same(place(v), to)) launcher_.copy(op, place(v), to);
    }
  }

  bool place_view(const Op& op) {
    const Place& x = place(op.in[0]);
    if (op.kind == "split") {
      int64_t begin = 0;
      for (ValueId v : op.out)
        plan_.places[static_cast<size_t>(v)] = next_part(x, op, p_.type(v).dims, begin);
      return std::none_of(op.out.begin(), op.out.end(),
                          [&](ValueId v) { return pinned(v, place(v)); });
    }
    Place view{x.storage, x.offset, x.layout};
    if (op.kind != "reshape") {
      view.layout = seen(x.layout, op);
    } else if (!reshaped(x.layout, p_.type(op.out[0]).dims, view.layout)) {
      if (!uses_.only_in_products(op.out[0])) return false;
      view.layout = x.layout;  // a product may read it as it is (ops/matmul.cpp, take)
    }
    if (pinned(op.out[0], view)) return false;
    plan_.places[static_cast<size_t>(op.out[0])] = view;
    return true;
  }

  static bool same(const Place& a, const Place& b) {
    return a.storage == b.storage && a.offset == b.offset;
  }

  // Whether v must have contiguous memory of its own, and cannot be a view that lies `here`. A
  // result, for instance, must not change with the state that it was read from.
  bool pinned(ValueId v, const Place& here) {
    auto state = uses_.next_state.find(v);
    return nodes_.count(v) ||
           (state != uses_.next_state.end() && !same(place(state->second), here)) ||
           (uses_.is_result(v) && plan_.storage(here.storage).region == Region::state);
  }

  // Adds a copy for a shape op that cannot be a view.
  void copy_view(const Op& op, int op_index) {
    if (op.kind == "split") {
      for (ValueId v : op.out) {
        Place from = plan_.places[static_cast<size_t>(v)];
        plan_.places[static_cast<size_t>(v)] = {};
        launcher_.copy(op, from, output_place(v, op_index));
      }
      return;
    }
    Place from = place(op.in[0]);
    Place to = output_place(op.out[0], op_index);
    if (op.kind != "reshape") {
      from.layout = seen(from.layout, op);
    } else {
      to.layout = Strided::contiguous({from.layout.dtype, from.layout.dims});
    }
    launcher_.copy(op, from, to);
  }

  void place_exchange(const Op& op, int op_index) {
    Exchange e = exchange_of(p_, op, plan_.mesh, plan_.rank);
    if (!op.in.empty()) {
      e.send = place(op.in[0]);
      if (!e.send.layout.is_contiguous()) e.send = launcher_.contiguous_copy(op, e.send);
    }
    if (!op.out.empty()) e.recv = output_place(op.out[0], op_index);
    launcher_.post(std::move(e));
  }

  // Adds a copy over the state for an update that could not be written in place.
  void finish_update(ValueId state, ValueId next) {
    Place from = place(next), to = place(state);
    if (same(from, to)) return;
    Op reason;
    reason.phase = Phase::update, reason.site = p_.value(next).site;
    if (from.layout.dims.empty()) from.layout.strides.clear();
    launcher_.copy(reason, from, to);
  }

  RankPlan& plan_;
  Program& p_;
  std::map<ValueId, int64_t> nodes_;
  std::map<ValueId, ValueId> same_;
  std::map<ValueId, Inside> wanted_;
  std::vector<char> is_total_;             // by value
  const std::vector<const char*> wholes_;  // by value
  Launcher launcher_;
  Uses uses_;
  RowPlaces rows_{plan_, launcher_, uses_.last_read};
  PaddedRows padded_{plan_, uses_.readers};
  bool one_by_one_ = false;
  bool added_ =
      false;  // a sum of one microbatch is added to those before (lower/kernels/bucket.cpp)
};

}  // namespace

void place_values(RankPlan& plan) { Placer(plan).run(); }

}  // namespace orrery
