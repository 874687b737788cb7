// SPDX-License-Identifier: Apache-2.0
#include "program/join_products.h"

#include <algorithm>

#include "program/build.h"

namespace orrery {
namespace {

const Op* maker(const Program& p, ValueId v) {
  const OpId op = p.value(v).producer;
  return op == kNone ? nullptr : &p.ops()[static_cast<size_t>(op)];
}

// Whether the term is a^T b of a[rows, m] and b[rows, n], summed over the batch, in which copying
// the operands moves less than writing and adding the product.
bool is_of_few_rows(const Program& p, ValueId term) {
  const Op* op = maker(p, term);
  if (!op || op->kind != "matmul" || p.value(term).batch() != Batch::partial) return false;
  if (!attr_int(op->attrs, "ta", 0) || attr_int(op->attrs, "tb", 0)) return false;
  const Dims &a = p.type(op->in[0]).dims, &b = p.type(op->in[1]).dims;
  return a.size() == 2 && b.size() == 2 && a[0] * (a[1] + b[1]) <= 2 * a[1] * b[1];
}

bool are_alike(const Program& p, ValueId x, ValueId y) {
  const Op &a = *maker(p, x), &b = *maker(p, y);
  return a.attrs == b.attrs && a.completed_over == b.completed_over && a.phase == b.phase &&
         a.site.region == b.site.region && p.type(a.in[0]) == p.type(b.in[0]) &&
         p.type(a.in[1]) == p.type(b.in[1]);
}

// The operands `in` of the terms' products, row r of each beside row r of the others, so that the
// batch stays the outer part of the rows.
ValueId rows_of(Program& p, const std::vector<ValueId>& terms, size_t in) {
  std::vector<ValueId> parts;
  for (ValueId term : terms) {
    const ValueId x = maker(p, term)->in[in];
    parts.push_back(build::reshape(p, x, {p.type(x).dims[0], 1, p.type(x).dims[1]}));
  }
  return build::reshape(p, build::concat(p, parts, 1), {-1, p.type(parts[0]).dims[2]});
}

ValueId join(Program& p, const std::vector<ValueId>& terms) {
  const Op first = *maker(p, terms[0]);
  const Site site = p.site();
  const Phase phase = p.phase();
  const OpId twin = p.twin();
  p.set_site(first.site), p.set_phase(first.phase), p.set_twin(first.twin);
  const ValueId a = rows_of(p, terms, 0), b = rows_of(p, terms, 1);
  const ValueId joined = p.add1("matmul", {a, b}, first.attrs);
  p.mutable_ops().back().completed_over = first.completed_over;
  p.set_site(site), p.set_phase(phase), p.set_twin(twin);
  return joined;
}

}  // namespace

std::vector<ValueId> join_products(Program& p, const std::vector<ValueId>& terms) {
  std::vector<std::vector<ValueId>> groups;
  for (ValueId term : terms) {
    auto same = groups.end();
    if (is_of_few_rows(p, term))
      same = std::find_if(groups.begin(), groups.end(), [&](const std::vector<ValueId>& group) {
        return is_of_few_rows(p, group[0]) && are_alike(p, group[0], term);
      });
    if (same == groups.end())
      groups.push_back({term});
    else
      same->push_back(term);
  }
  std::vector<ValueId> joined;
  for (const std::vector<ValueId>& group : groups)
    joined.push_back(group.size() == 1 ? group[0] : join(p, group));
  return joined;
}

}  // namespace orrery
