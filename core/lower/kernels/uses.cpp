// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/uses.h"

#include <algorithm>

#include "program/strided.h"

namespace orrery {
namespace {

size_t at(ValueId v) { return static_cast<size_t>(v); }

}  // namespace

bool is_view(const std::string& kind) {
  return kind == "reshape" || kind == "transpose" || kind == "split" || kind == "windows";
}

Uses::Uses(const RankPlan& plan) : p_(plan.local.program) {
  last_read.assign(p_.values().size(), kNone), readers.resize(p_.values().size());
  for (auto& [state, next] : p_.updates()) next_state[next] = state;
  for (auto& [name, id] : p_.outputs()) results.insert(id);
  for (size_t i = 0; i < p_.ops().size(); ++i)
    for (ValueId v : p_.ops()[i].in)
      last_read[at(v)] = static_cast<int>(i), readers[at(v)].push_back(i);
  for (size_t i = p_.ops().size(); i-- > 0;)  // whoever reads a view reads the value under it
    if (const Op& op = p_.ops()[i]; is_view(op.kind) || may_be_row(op))
      for (ValueId x : op.in)
        for (ValueId v : op.out) last_read[at(x)] = std::max(last_read[at(x)], last_read[at(v)]);
}

bool Uses::may_replace(ValueId state, int op) const {
  const int last = last_read[at(state)];
  if (last != op) return last < op;
  const Op& reader = p_.ops()[static_cast<size_t>(op)];
  if (reader.kind == "update_slice") return reader.in[0] == state && may_write_into(reader);
  return reader.kind == "pointwise" && p_.type(reader.out[0]).dims == p_.type(state).dims;
}

bool Uses::sees(ValueId v, ValueId x) const {
  const OpId maker = p_.value(v).producer;
  if (v == x || maker == kNone) return v == x;
  const Op& op = p_.ops()[at(maker)];
  return is_view(op.kind) && sees(op.in[0], x);
}

bool Uses::may_be_row(const Op& op) const {
  return op.kind == "concat" && op.phase != Phase::update && !is_result(op.out[0]) &&
         !is_update(op.out[0]);
}

bool Uses::only_in_products(ValueId v) const {
  if (is_result(v) || p_.type(v).elements() == 0) return false;
  return std::all_of(readers[at(v)].begin(), readers[at(v)].end(), [&](size_t i) {
    const Op& op = p_.ops()[i];
    if (op.kind == "reshape") return only_in_products(op.out[0]);
    return (op.kind == "matmul" || op.kind == "matmul_pointwise") && nests(op, v);
  });
}

Strided Uses::as_read(ValueId v) const {
  std::vector<const Op*> views;  // those that read one another alone, up to the last reshape
  size_t reshapes = 0;
  for (ValueId x = v; readers[at(x)].size() == 1 && !is_result(x) && !is_update(x);) {
    const Op& op = p_.ops()[readers[at(x)][0]];
    if (op.kind != "reshape" && op.kind != "transpose") break;
    views.push_back(&op), x = op.out[0];
    if (op.kind == "reshape") reshapes = views.size();
  }
  const Strided alone = Strided::contiguous(p_.type(v));
  if (reshapes == 0) return alone;
  Strided layout = Strided::contiguous(p_.type(views[reshapes - 1]->out[0]));
  for (size_t i = reshapes; i-- > 0;) {
    const Strided behind = layout;
    if (views[i]->kind == "transpose")
      layout = transposed(behind, inverse(attr_ints(views[i]->attrs, "perm")));
    else if (!reshaped(behind, p_.type(views[i]->in[0]).dims, layout))
      return alone;
  }
  return layout;
}

bool Uses::is_of_windows(ValueId v) const {
  const OpId maker = p_.value(v).producer;
  if (maker == kNone) return false;
  const Op& op = p_.ops()[static_cast<size_t>(maker)];
  return op.kind == "windows" || (is_view(op.kind) && is_of_windows(op.in[0]));
}

bool Uses::nests(const Op& product, ValueId v) const {
  const ValueId a = product.in[0], b = product.in[1];
  if (a == b || attr_int(product.attrs, v == a ? "ta" : "tb", 0)) return false;
  const size_t rank_b = p_.type(b).dims.size(), rank_y = p_.type(product.out[0]).dims.size();
  if (v == a && rank_b == 2) return true;
  return rank_b == rank_y && (rank_y == 2 || is_of_windows(v));
}

bool Uses::only_copied(ValueId v, const Strided& layout) const {
  const std::vector<size_t>& all = readers[static_cast<size_t>(v)];
  return !all.empty() && std::all_of(all.begin(), all.end(), [&](size_t reader) {
    const Op& op = p_.ops()[reader];
    Strided view;
    return op.kind == "reshape" && !reshaped(layout, p_.type(op.out[0]).dims, view);
  });
}

}  // namespace orrery
