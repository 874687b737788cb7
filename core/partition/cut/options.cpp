// SPDX-License-Identifier: Apache-2.0
//
// Finds the ways in which an op can be carried out on cut values, and chooses the one that sends
// the fewest bytes. Most ways follow from the op's factor map, some from its own rule.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "partition/cut/pass.h"
#include "program/strided.h"

namespace orrery {
namespace {

bool draws(const Op& op) { return op.attrs.has("rng_id") || draws(op.expr); }

}  // namespace

int dim_of(const std::vector<int>& factors, int factor) {
  auto at = std::find(factors.begin(), factors.end(), factor);
  return at == factors.end() ? kNone : static_cast<int>(at - factors.begin());
}

double CutPass::bytes(ValueId v) const {
  const Value& value = from.value(v);
  double share = value.batch() == Batch::sharded ? mesh_.batch_ranks() : 1;
  return static_cast<double>(value.type.bytes()) / share;
}

// Whether v's sum may be scattered along the sequence instead of being completed everywhere. Where
// other axes cut the sequence too, each of their parts is scattered (segments): so a rank's share
// lies within one part, and this axis exchanges nothing but what its own ranks have.
bool CutPass::scatters(const Op& op, ValueId v) const {
  const Value& value = from.value(v);
  const int dim = ask_.scatter;
  if (dim == kNone || cut(v).kind != Placement::partial || value.batch() != Batch::sharded)
    return false;
  if (dim == value.batch_dim() || static_cast<int>(value.type.dims.size()) <= dim + 1) return false;
  int64_t extent = value.type.dims[static_cast<size_t>(dim)];
  if (extent % (int64_t{n_parts} * outer_))
    fail(ORR_INVALID,
         "{}{}: a sequence of {}{} does not divide over the {} {} of axis '{}': choose a "
         "length that they divide, or turn `sequence` off",
         op.site.prefix(), op.kind, extent, outer_ > 1 ? fmt::format(" in {} parts", outer_) : "",
         n_parts, n_chunks > 1 ? "chunks" : "ranks", me.axis);
  return true;
}

// Whether v's parts should not be gathered. Parts of parameters, and of values made of parameters
// only, stay where they are, and activations travel. Activations stay too if a strategy has placed
// some.
bool CutPass::stays(const Op& op, ValueId v) const {
  const Batch batch = from.value(v).batch();
  const bool kind = batch == Batch::none || (batch == Batch::sharded && !asked_.empty());
  return kind && cut(v).kind == Placement::split && op.phase != Phase::update;
}

// Whether some rank or chunk would have nothing of one of the parts that a dim consists of.
bool CutPass::is_too_fine(const Placement& cut) const {
  return cut.kind == Placement::split && std::any_of(cut.segments.begin(), cut.segments.end(),
                                                     [&](int64_t n) { return n < n_parts; });
}

// Whether an earlier op has read v, a sum, completed or scattered. From then on all ops read it so:
// ranks that went on with their summands would keep these, whole ones, beside the sum, and send a
// later sum for the one that they save.
bool CutPass::is_summed(ValueId v) const {
  if (cut(v).kind != Placement::partial) return false;
  const auto first = moved_.lower_bound({v, Placement::whole, kNone, {}, 0});
  return first != moved_.end() && std::get<0>(first->first) == v;
}

// Whether the way needs what no move makes, or summands that are not to be read any more.
bool CutPass::is_barred(const Op& op, const Way& way) const {
  for (const std::vector<Placement>* cuts : {&way.in, &way.out})
    for (const Placement& c : *cuts)
      if (is_too_fine(c)) return true;
  for (size_t i = 0; i < op.in.size(); ++i)
    if (way.in[i].kind == Placement::partial && is_summed(op.in[i])) return true;
  return false;
}

double CutPass::cost_of(const Op& op, const Way& way) const {
  if (is_barred(op, way)) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const ValueId v = op.in[i];
    double each = is_moved(v, way.in[i]) ? 0 : move_cost(cut(v), way.in[i], n_parts);
    const bool held =
        stays(op, v) && way.in[i].kind != Placement::split && way.in[i].kind != Placement::samples;
    bool uneven = cut(v).kind == Placement::split && !cut(v).is_even(n_parts) &&
                  from.value(v).batch() != Batch::none;
    const bool made_sum = way.in[i].kind == Placement::partial && !from.type(v).dims.empty() &&
                          cut(v).kind != Placement::partial;
    if ((uneven && cut(v) != way.in[i]) || made_sum || each >= kNever)
      return std::numeric_limits<double>::infinity();
    sum += each * bytes(v) * (held ? 1e3 : 1);
  }
  for (size_t j = 0; j < op.out.size(); ++j)  // completing a sum costs a move later
    if (way.out[j].kind == Placement::partial)
      sum += move_cost(way.out[j], Placement{}, n_parts) * bytes(op.out[j]);
  for (size_t i = 0; i < op.in.size(); ++i)
    if (way.in[i].kind == Placement::partial)
      sum -= move_cost(Placement::summand(), Placement{}, n_parts) * bytes(op.in[i]);
  return sum;
}

// Whether every rank would keep a summand of a whole sum over the batch, as of a gradient, until
// all microbatches have been added to it.
bool CutPass::keeps_whole_sum(const Op& op, const Way& way) const {
  for (size_t j = 0; j < op.out.size(); ++j)
    if (way.out[j].kind == Placement::partial && from.value(op.out[j]).batch() == Batch::partial)
      return true;
  return false;
}

// Whether the gradient of a parameter that is cut is made in parts.
bool CutPass::keeps_parts_of_sum(const Op& op, const Way& way) const {
  for (size_t j = 0; j < op.out.size(); ++j) {
    const Value& value = from.value(op.out[j]);
    if (way.out[j].kind == Placement::split && value.batch() == Batch::partial &&
        value.role == Role::grad && ask_.cuts.count(value.name))
      return true;
  }
  return false;
}

// Takes the way if it is the best so far: that which makes a cut parameter's gradient in parts,
// even if activations travel further for it, then that which sends less.
void CutPass::consider(const Op& op, std::optional<Way> way, Way& best) const {
  if (!way) return;
  way->cost = cost_of(op, *way);
  if (std::isinf(way->cost)) return;
  const bool smaller = keeps_whole_sum(op, best) && keeps_parts_of_sum(op, *way);
  const bool larger = keeps_parts_of_sum(op, best) && keeps_whole_sum(op, *way);
  if (smaller || (!larger && way->cost < best.cost)) best = std::move(*way);
}

Way CutPass::whole(const Op& op) const {
  Way way;
  way.in.reserve(op.in.size()), way.out.reserve(op.out.size());
  for (ValueId v : op.in) way.in.push_back(usual(v));
  for (ValueId v : op.out) way.out.push_back(usual(v));
  way.cost = cost_of(op, way);
  return way;
}

// Whether the op may be computed in parts along the factor although no input is split along it,
// because one is split along another dim, and is moved to this one. The batch dim is left alone:
// other axes split it.
bool CutPass::opens(const Op& op, const Sharding& s, int factor) const {
  bool parts = false;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& value = from.value(op.in[i]);
    parts = parts || stays(op, op.in[i]);
    const int dim = dim_of(s.in[i], factor);
    if (dim == kNone) continue;
    const bool batch = value.batch() == Batch::sharded && value.batch_dim() == dim;
    if (batch || value.type.dims[static_cast<size_t>(dim)] % n_parts) return false;
    if (usual(op.in[i]).kind == Placement::samples) return false;
  }
  return parts && !asked_.empty();
}

// Where the axis deals the batch: whether in this way values of samples stay so, and the result has
// the bits of one rank. Sums over a cut dim have not, nor have forward sums, which must not count
// the rows that pad the batch.
bool CutPass::keeps_samples(const Op& op, const Way& way) const {
  if (!over_batch) return true;
  auto dealt = [&](ValueId v) { return usual(v).kind == Placement::samples; };
  const bool any = std::any_of(op.in.begin(), op.in.end(), dealt);
  for (size_t i = 0; i < op.in.size(); ++i)
    if (dealt(op.in[i]) && way.in[i].kind != Placement::split) return false;
  for (size_t j = 0; j < op.out.size(); ++j) {
    const bool sum = any && from.value(op.out[j]).batch() == Batch::partial;
    if (way.out[j].kind != Placement::split || any != (sum || dealt(op.out[j])) ||
        (sum && op.phase == Phase::forward))
      return false;
  }
  return true;
}

// The segments of the dims that belong to the factor, taken from the first input that is cut along
// it. If the op may choose the cut itself, a dim is one segment. Returns nothing if the op cannot
// be cut along this factor.
std::optional<Dims> CutPass::segments_along(const Op& op, const Sharding& s, int factor) const {
  std::optional<Dims> found;
  bool fresh = opens(op, s, factor);
  for (size_t i = 0; i < op.in.size(); ++i) {
    int dim = dim_of(s.in[i], factor);
    if (dim == kNone) continue;
    const Placement& now = cut(op.in[i]);
    if (now.kind == Placement::split && now.dim == dim && !found) found = now.segments;
    const int64_t extent = from.type(op.in[i]).dims[static_cast<size_t>(dim)];
    if (found) continue;
    if (fresh)
      found = Dims{extent};
    else if (dim == ask_.scatter && scatters(op, op.in[i]))
      found = Dims(static_cast<size_t>(outer_), extent / outer_);
  }
  return found;
}

std::optional<Way> CutPass::along(const Op& op, const Sharding& s, int factor) const {
  std::optional<Dims> segments = segments_along(op, s, factor);
  if (!segments) return std::nullopt;
  Way way;
  way.in.reserve(s.in.size()), way.out.reserve(s.out.size());
  for (auto& factors : s.in) {
    int dim = dim_of(factors, factor);
    way.in.push_back(dim == kNone ? Placement{} : Placement::along(dim, *segments));
  }
  for (auto& factors : s.out) {
    int dim = dim_of(factors, factor);
    if (dim == kNone && !s.sums) return std::nullopt;
    way.out.push_back(dim == kNone ? Placement::summand() : Placement::along(dim, *segments));
  }
  if (!keeps_samples(op, way)) return std::nullopt;
  return way;
}

void CutPass::try_factors(const Op& op, Way& best) const {
  if (draws(op)) return;  // random numbers belong to the elements of the whole tensor
  Sharding s = op_def(op.kind).sharding(args_of(from, op), out_types(from, op));
  std::set<int> factors;
  for (auto& f : s.in) factors.insert(f.begin(), f.end());
  factors.erase(kNone);
  for (int factor : factors) consider(op, along(op, s, factor), best);
}

std::vector<Way> CutPass::options_of(const Op& op, const std::vector<Placement>& in) const {
  const PartsRule* rule = op_def(op.kind).parts;
  return rule && rule->options ? rule->options(*this, op, in) : std::vector<Way>{};
}

Way CutPass::choose(const Op& op) const {
  Way best = whole(op);
  bool cut_any =
      std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return cut(v) != usual(v); });
  if (!cut_any) return best;
  std::vector<Placement> in;
  in.reserve(op.in.size());
  for (ValueId v : op.in) in.push_back(cut(v));
  for (Way& way : options_of(op, in)) {
    if (way.only) return way;
    consider(op, std::move(way), best);
  }
  const PartsRule* rule = op_def(op.kind).parts;
  if (!rule || rule->factors) try_factors(op, best);
  return best;
}

}  // namespace orrery
