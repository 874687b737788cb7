// SPDX-License-Identifier: Apache-2.0
//
// Values of one rank alone. A first dim that is cut and then split into its indices, such as a
// matrix for each expert, gives pieces that lie on one rank whole; what is computed of them is
// computed there, and a concat puts them together again as the parts of a cut dim.
#include <algorithm>

#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {

// The coordinate that holds index i of n, the same whatever the number of ranks that chunks are
// dealt to.
int CutPass::owner_of(size_t i, size_t n) const {
  Member part{0, parts_, {}, {}};
  while (static_cast<int64_t>(i) >= part.end(static_cast<int64_t>(n))) ++part.rank;
  return part.rank / chunks_;
}

bool CutPass::owned(const Op& op) {
  if (op.kind == "split") return split_to_owners(op);
  std::vector<int> owners;
  for (ValueId v : op.in)
    if (cut(v).kind == Cut::owned) owners.push_back(cut(v).dim);
  if (owners.empty()) return false;
  if (op.kind == "concat" && owners.size() == op.in.size() && concat_owned(op)) return true;
  if (std::count(owners.begin(), owners.end(), owners[0]) != static_cast<long>(owners.size()))
    return false;
  run_at_owner(op, owners[0]);
  return true;
}

bool CutPass::split_to_owners(const Op& op) {
  const Cut& whole = cut(op.in[0]);
  const Dims sizes = attr_ints(op.attrs, "sizes");
  const bool each = std::all_of(sizes.begin(), sizes.end(), [](int64_t n) { return n == 1; });
  const bool met = from_.value(op.in[0]).batch == Batch::none && op.phase != Phase::update;
  if (deals_ && met) return false;  // by samples that stay on their ranks
  if (whole.kind != Cut::parts || whole.dim != 0 || attr_int(op.attrs, "dim", 0) != 0 || !each ||
      whole.segments.size() != 1)
    return false;
  const ValueId x = known(op.in[0]);
  const std::vector<ValueId> mine =
      build::split(to_, x, 0, Dims(static_cast<size_t>(to_.type(x).dims[0]), 1));
  size_t next = 0;
  for (size_t j = 0; j < sizes.size(); ++j) {
    const int owner = owner_of(j, sizes.size());
    become(op.out[j], owner == me_.rank ? mine[next++] : kNone, Cut::of_one(owner));
  }
  return true;
}

bool CutPass::concat_owned(const Op& op) {
  const int dim = static_cast<int>(attr_int(op.attrs, "dim", 0));
  std::vector<ValueId> mine;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool one = from_.type(op.in[i]).dims[static_cast<size_t>(dim)] == 1;
    if (!one || cut(op.in[i]).dim != owner_of(i, op.in.size())) return false;
    if (cut(op.in[i]).dim == me_.rank) mine.push_back(known(op.in[i]));
  }
  become(op.out[0], build::concat(to_, mine, dim),
         Cut::of(dim, {static_cast<int64_t>(op.in.size())}));
  return true;
}

// What the others have is read whole, which takes all ranks.
void CutPass::run_at_owner(const Op& op, int owner) {
  Op copy = op;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool here = cut(op.in[i]).kind == Cut::owned;
    if (!here) copy.in[i] = read(op.in[i], Cut{});
    if (here && owner == me_.rank) copy.in[i] = known(op.in[i]);
  }
  alone_ = true;
  for (ValueId v : op.out) become(v, owner == me_.rank ? v : kNone, Cut::of_one(owner));
  if (owner == me_.rank) to_.append(std::move(copy));
}

// A copy for all ranks.
ValueId CutPass::from_owner(ValueId v) {
  const Value& value = from_.value(v);
  const int owner = cut(v).dim;
  ValueId x = here_[static_cast<size_t>(v)];
  if (x == kNone) {
    x = to_.constant(0, value.type.dtype, value.type.dims);
    Value& copy = to_.mutable_value(x);
    copy.batch = value.batch, copy.batch_dim = value.batch_dim;
  }
  return broadcast(to_, x, owner, me_);
}

}  // namespace orrery
