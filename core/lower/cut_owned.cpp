// SPDX-License-Identifier: Apache-2.0
//
// Values of one rank alone. A first dim that is cut and then split into its indices, such as a
// matrix for each expert, gives pieces that lie on one rank whole; what is computed of them is
// computed there, and a concat puts them together again as the parts of a cut dim.
#include <algorithm>

#include "lower/cut_pass.h"
#include "program/build.h"

namespace orrery {
namespace {

int64_t attr_dim(const Op& op) { return attr_int(op.attrs, "dim", 0); }

// The coordinate that holds the indices [begin, end) of n; kNone if several do.
int owner_of(int64_t begin, int64_t end, int64_t n, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const Member rank{r, ranks, {}, {}};
    if (begin >= rank.begin(n) && end <= rank.end(n) && begin < end) return r;
  }
  return kNone;
}

// The owners of pieces of these sizes that make up a dim; nothing if a piece has several.
std::optional<std::vector<int>> owners_of(const Dims& sizes, int ranks) {
  int64_t n = 0, at = 0;
  for (int64_t size : sizes) n += size;
  std::vector<int> owners;
  for (int64_t size : sizes) {
    owners.push_back(owner_of(at, at + size, n, ranks));
    if (owners.back() == kNone) return std::nullopt;
    at += size;
  }
  return owners;
}

}  // namespace

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
  if (whole.kind != Cut::parts || whole.dim != 0 || attr_dim(op) != 0 || !each ||
      whole.segments.size() != 1)
    return false;
  const auto owners = owners_of(sizes, parts_);  // the same pieces whatever the number of ranks
  if (!owners) return false;
  Dims mine;
  std::vector<size_t> which;
  for (size_t j = 0; j < sizes.size(); ++j)
    if ((*owners)[j] / chunks_ == me_.rank) mine.push_back(sizes[j]), which.push_back(j);
  const std::vector<ValueId> pieces = build::split(to_, known(op.in[0]), whole.dim, mine);
  for (size_t j = 0; j < sizes.size(); ++j)
    become(op.out[j], kNone, Cut::of_one((*owners)[j] / chunks_));
  for (size_t i = 0; i < which.size(); ++i)
    become(op.out[which[i]], pieces[i], Cut::of_one(me_.rank));
  return true;
}

bool CutPass::concat_owned(const Op& op) {
  const int dim = static_cast<int>(attr_dim(op));
  Dims sizes;
  for (ValueId v : op.in) sizes.push_back(from_.type(v).dims[static_cast<size_t>(dim)]);
  const auto owners = owners_of(sizes, parts_);
  if (!owners) return false;
  std::vector<ValueId> mine;
  for (size_t i = 0; i < op.in.size(); ++i) {
    if (cut(op.in[i]).dim != (*owners)[i] / chunks_) return false;
    if (cut(op.in[i]).dim == me_.rank) mine.push_back(known(op.in[i]));
  }
  const int64_t extent = from_.type(op.out[0]).dims[static_cast<size_t>(dim)];
  become(op.out[0], build::concat(to_, mine, dim), Cut::of(dim, {extent}));
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
