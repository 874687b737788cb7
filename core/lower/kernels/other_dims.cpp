// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/other_dims.h"

#include <algorithm>

#include "program/strided.h"

namespace orrery {

// Both dims are walked from the last one on. Of x those that it has are as long as the op's, or 1.
std::optional<Dims> seen_in(const Dims& x, const Dims& from, const Dims& to) {
  Dims seen(to.size(), 1);
  size_t k = to.size();
  for (size_t i = from.size(); i-- > 0;) {
    const size_t missing = from.size() - x.size();
    const bool whole = i >= missing && x[i - missing] == from[i];
    for (int64_t n = 1; n != from[i];) {
      if (k == 0 || to[k - 1] == 0 || from[i] % (n * to[k - 1]) != 0) return std::nullopt;
      --k, n *= to[k];
      if (whole) seen[k] = to[k];
    }
  }
  if (std::any_of(to.begin(), to.begin() + k, [](int64_t n) { return n != 1; }))
    return std::nullopt;
  return seen;
}

OtherDims::OtherDims(const LocalProgram& local, const std::vector<char>& pinned)
    : p_(local.program), fixed_(pinned) {
  for (const Op& op : p_.ops())
    if (op.kind != "pointwise" && op.kind != "reshape")
      for (ValueId v : op.in) fixed_[static_cast<size_t>(v)] = true;
}

ValueId OtherDims::under(ValueId v) const {
  const OpId maker = p_.value(v).producer;
  if (maker == kNone) return kNone;
  const Op& op = p_.ops()[static_cast<size_t>(maker)];
  return op.kind == "reshape" ? op.in[0] : kNone;
}

ValueId OtherDims::root(ValueId v) const {
  while (under(v) != kNone) v = under(v);
  return v;
}

ValueId OtherDims::known(ValueId v, const Dims& dims) const {
  while (v != kNone && p_.type(v).dims != dims) v = under(v);
  return v;
}

bool OtherDims::may_have(const Op& op, const Dims& dims) const {
  const Dims& own = p_.type(op.out[0]).dims;
  if (own == dims) return true;
  const auto is_free = [&](ValueId v) {
    return !fixed_[static_cast<size_t>(v)] && p_.value(v).tier == Tier::device;
  };
  return !draws(op.expr) && std::all_of(op.out.begin(), op.out.end(), is_free) &&
         std::all_of(op.in.begin(), op.in.end(),
                     [&](ValueId v) { return seen_in(p_.type(v).dims, own, dims).has_value(); });
}

}  // namespace orrery
