// SPDX-License-Identifier: Apache-2.0
//
// The ops that make such a value are added again for the samples. Which rows of its inputs an op
// reads for rows of its result, its factors say (Sharding): indices of a factor of the result are
// computed each by itself. Random numbers and repetitions are functions of the place in the whole
// tensor, so the rows have the same bits wherever they are made.
#include "program/own_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "program/build.h"
#include "program/same_work.h"
#include "program/strided.h"
#include "program/user_gradient.h"

namespace orrery {
namespace {

// How many elements lie in front of a dim.
int64_t in_front(const Dims& dims, size_t dim) {
  return std::accumulate(dims.begin(), dims.begin() + static_cast<long>(dim), int64_t{1},
                         std::multiplies<>());
}

// Whether all that the op computes, it computes for each index of the factor.
bool is_for_each(const Sharding& s, int factor) {
  return std::all_of(s.out.begin(), s.out.end(), [&](const std::vector<int>& dims) {
    return std::count(dims.begin(), dims.end(), factor) > 0;
  });
}

class OwnRows {
 public:
  explicit OwnRows(Program& program) : p(program) {}

  // What `v` has for each sample along a dim that runs over the batch; kNone if its rows may differ
  // by more than their place, as those of parameters and of what the script hands in may, or are
  // not computed each by itself.
  ValueId of(ValueId v, size_t dim) {
    const auto [at, fresh] = known_.emplace(std::pair(v, dim), kNone);
    if (fresh && may_have_rows(v, dim)) at->second = made_again(v, dim);
    return at->second;
  }

  // The rows of a value that is made whole everywhere.
  ValueId picked(ValueId v, const Site& site) {
    const int64_t batch = p.batch_size();
    const Dims dims = p.type(v).dims, table = {batch, p.type(v).elements() / batch};
    const ValueId index = added(site, "sample_index", {}, {{"dims", Dims{batch}}});
    if (dims != table) v = added(site, "reshape", {v}, {{"dims", table}});
    v = added(site, "gather", {v, index});
    return dims == table ? v : added(site, "reshape", {v}, {{"dims", dims}});
  }

 private:
  bool may_have_rows(ValueId v, size_t dim) const {
    const Value& value = p.value(v);
    return value.producer != kNone && value.batch() == Batch::none && value.varying().empty() &&
           value.type.dims[dim] % p.batch_size() == 0;
  }

  ValueId made_again(ValueId v, size_t dim) {
    const size_t out = static_cast<size_t>(p.value(v).out_index);
    Op op = p.ops()[static_cast<size_t>(p.value(v).producer)];
    if (op.kind == "iota") return picked(v, op.site);
    if (draws(op.expr) && in_front(p.type(v).dims, dim) > 1) return drawn(v, dim, op.site);
    if (op.kind == "user_gradient") return with_its_gradient(std::move(op), dim);
    if (names_axis(op.kind)) return kNone;
    std::vector<Type> types;
    for (ValueId y : op.out) types.push_back(p.type(y));
    const Sharding s = op_def(op.kind).sharding(args_of(p, op), types);
    const int factor = s.out[out][dim];
    if (factor == kNone || !is_for_each(s, factor)) return kNone;
    bool of_rows = false;
    for (size_t i = 0; i < op.in.size(); ++i)
      for (size_t d = 0; d < s.in[i].size(); ++d) {
        if (s.in[i][d] != factor) continue;
        op.in[i] = of(op.in[i], d), of_rows = true;
        if (op.in[i] == kNone) return kNone;
      }
    if (!of_rows && op.kind != "pointwise") return kNone;
    return added(std::move(op), out, of_rows ? kNone : static_cast<int32_t>(dim));
  }

  // Its function gets the rows of those values of which the rows of y were made.
  ValueId with_its_gradient(Op op, size_t dim) {
    const std::vector<ValueId> whole = op.in;
    op.in[0] = of(whole[0], dim);
    for (size_t i = 1; i < whole.size(); ++i)
      for (auto at = known_.lower_bound({whole[i], 0});
           at != known_.end() && at->first.first == whole[i]; ++at) {
        if (at->second == kNone) continue;
        if (op.in[i] != whole[i]) return kNone;  // rows of one dim, and of another one
        op.in[i] = at->second;
      }
    return op.in[0] == kNone ? kNone : with_gradient_again(p, op);
  }

  // Random numbers are drawn for samples only where the batch comes first.
  ValueId drawn(ValueId v, size_t dim, const Site& site) {
    Dims order(p.type(v).dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + static_cast<long>(dim),
                order.begin() + static_cast<long>(dim) + 1);
    v = picked(added(site, "transpose", {v}, {{"perm", order}}), site);
    return added(site, "transpose", {v}, {{"perm", inverse(order)}});
  }

  ValueId added(const Site& site, const char* kind, const std::vector<ValueId>& in,
                Attrs attrs = {}) {
    Op op;
    op.kind = kind, op.attrs = std::move(attrs), op.in = in, op.site = site;
    return added(std::move(op), 0, kNone);
  }

  // An output of the op, or of an equal one that was added before: what several ops of samples read
  // is computed once. `along`: the dim that an op which reads none of samples makes for them.
  ValueId added(Op op, size_t out, int32_t along) {
    op.out.clear(), op.phase = p.phase(), op.twin = kNone;
    for (const Op& known : p.ops())
      if (is_same_work(known, op) && known.in == op.in && known.phase == op.phase &&
          known.site.region == op.site.region &&
          (along == kNone || is_made_for_samples(known.out[out], along)))
        return known.out[out];
    p.append(std::move(op));
    const ValueId y = p.ops().back().out[out];
    if (along == kNone) return y;
    p.mutable_value(y).set_batch(Batch::sharded, along);
    return y;
  }

  bool is_made_for_samples(ValueId v, int32_t along) const {
    return p.value(v).batch() == Batch::sharded && p.value(v).batch_dim() == along;
  }

  Program& p;
  std::map<std::pair<ValueId, size_t>, ValueId> known_;
};

// The factor of the batch dims of all inputs of samples, if there is one.
int factor_of_batch(const Program& p, const Op& op, const Sharding& s) {
  int factor = kNone;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch() != Batch::sharded) continue;
    const int its = s.in[i][static_cast<size_t>(v.batch_dim())];
    if (its == kNone || (factor != kNone && its != factor)) return kNone;
    factor = its;
  }
  return factor;
}

}  // namespace

ValueId met_in(Program& p, ValueId x, const std::function<bool(ValueId)>& is_in_y) {
  if (p.phase() != Phase::forward || p.batch_size() < 2) return x;
  const Dims dims = p.type(x).dims;
  ValueId met = is_in_y(x) ? x : kNone;
  for (size_t d = 0; d < dims.size(); ++d) {
    const ValueId rows = OwnRows(p).of(x, d);
    if (rows == kNone || !is_in_y(rows)) continue;
    if (met != kNone)
      p.fail_here(
          fmt::format("{} has the batch's extent in dim {}, and samples meet its rows there, but "
                      "all of it is read, too: put the rows first and write x:for_each_sample() "
                      "where it is made, for what each sample reads",
                      to_string(p.type(x)), d + 1));
    met = rows;
  }
  return met == kNone ? x : met;
}

ValueId own_rows(Program& p, ValueId x) { return OwnRows(p).picked(x, p.site()); }

void take_own_rows(Program& p, Op& op, const std::vector<Type>& out) {
  const auto is_of = [&](ValueId v, Batch batch) { return p.value(v).batch() == batch; };
  const auto any = [&](Batch batch) {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return is_of(v, batch); });
  };
  if (p.phase() != Phase::forward || p.batch_size() < 2 || op.kind == "user_gradient") return;
  if (!any(Batch::sharded) || !any(Batch::none)) return;
  const Sharding s = op_def(op.kind).sharding(args_of(p, op), out);
  const int factor = factor_of_batch(p, op, s);
  if (factor == kNone || !is_for_each(s, factor)) return;
  OwnRows rows(p);
  for (size_t i = 0; i < op.in.size(); ++i)
    for (size_t d = 0; d < s.in[i].size() && is_of(op.in[i], Batch::none); ++d)
      if (s.in[i][d] == factor)
        if (const ValueId own = rows.of(op.in[i], d); own != kNone) op.in[i] = own;
}

}  // namespace orrery
