// SPDX-License-Identifier: Apache-2.0
//
// For kernel plugins that compute several ops as one (kernel.h, claim): groups that many kernels
// like. A plugin names those of them that it has kernels for:
//
//   orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
//     return orr::guard([&] { if (program->fused) orr::claim_norm_grads(*program, *claims); });
//   }
//
// sdk/joined.hpp makes of such a group the one op that its kernel computes.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <algorithm>
#include <optional>
#include <orrery/sdk/plugin.hpp>
#include <vector>

namespace orr {

// The ops of a program or group, with who makes and who reads its values.
class Readers {
 public:
  explicit Readers(const orr_group& ops)
      : ops_(ops),
        maker_(size_t(ops.n_values), -1),
        outside_(size_t(ops.n_values)),
        of_(size_t(ops.n_values)) {
    for (int32_t i = 0; i < ops.n_ops; ++i) {
      for (int32_t v : in(i)) of_[size_t(v)].push_back(i);
      for (int32_t j = 0; j < ops.ops[i].op->n_out; ++j) maker_[size_t(ops.ops[i].out[j])] = i;
    }
    for (int32_t k = 0; k < ops.n_out; ++k) outside_[size_t(ops.out[k])] = true;
  }

  int32_t size() const { return ops_.n_ops; }
  const orr_group_op& at(int32_t i) const { return ops_.ops[i]; }
  const orr_op& op(int32_t i) const { return *ops_.ops[i].op; }
  std::vector<int32_t> in(int32_t i) const { return {at(i).in, at(i).in + op(i).n_in}; }
  int32_t maker(int32_t value) const { return maker_[size_t(value)]; }  // -1: none of these ops
  const std::vector<int32_t>& of(int32_t value) const { return of_[size_t(value)]; }
  bool is_read_outside(int32_t value) const { return outside_[size_t(value)]; }

 private:
  orr_group ops_;
  std::vector<int32_t> maker_;
  std::vector<char> outside_;  // by value: something else reads it, too
  std::vector<std::vector<int32_t>> of_;
};

inline bool is_kind(const orr_op& op, std::string_view kind) { return op.kind == kind; }

inline bool same_type(const orr_tensor& a, const orr_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

// Whether two ops add their samples over the same leaves (ops.h, LEAVES), to the same dtype.
inline bool same_leaves(const orr_op& a, const orr_op& b) {
  const auto same = [&](const char* name) {
    return bool(attr(a, name)) == bool(attr(b, name)) &&
           attr_int(a, name, 0) == attr_int(b, name, 0);
  };
  return same("leaf_lo") && same("leaf_n") && same("leaf_total") && same("dtype");
}

// -- the gradients of a norm ----------------------------------------------------------------------

// The places of the ops that norm_grad (ops.h) stands for. `adder` adds another gradient to that
// of the input, `summer` sums what is stored over its rows, as a bias's gradient does; -1: none.
struct NormGrads {
  int32_t input, params, adder = -1, summer = -1;

  std::vector<int32_t> all() const {
    std::vector<int32_t> found = {input, params};
    for (int32_t i : {adder, summer})
      if (i >= 0) found.push_back(i);
    std::sort(found.begin(), found.end());
    return found;
  }
};

// The later op that makes the gradients of the parameters, of the rows of op i; or -1.
inline int32_t norm_params_of(const Readers& ops, int32_t i) {
  std::vector<int32_t> rows = ops.in(i);
  rows.erase(rows.begin() + 2);  // the weight
  for (int32_t j : ops.of(rows[1]))
    if (j > i && is_kind(ops.op(j), "norm_param_grad") && ops.in(j) == rows &&
        ops.at(j).call == ops.at(i).call)
      return j;
  return -1;
}

// The op that adds something to the result of op i, and does nothing else; or -1.
inline int32_t adder_of(const Readers& ops, int32_t i) {
  const int32_t dx = ops.at(i).out[0];
  if (ops.is_read_outside(dx) || ops.of(dx).size() != 1) return -1;
  const int32_t j = ops.of(dx)[0];
  const orr_op& op = ops.op(j);
  if (!is_kind(op, "pointwise") || op.n_in != 2 || op.n_out != 1 || op.expr->n_instrs != 3)
    return -1;
  const orr_instr& last = op.expr->instrs[2];
  const int32_t other = ops.in(j)[0] == dx;  // which input
  const bool fits = last.fn == ORR_FN_ADD && last.a != last.b &&
                    same_type(op.in[other], op.out[0]) && same_type(op.out[0], ops.op(i).out[0]) &&
                    ops.at(j).call == ops.at(i).call;
  return fits && ops.maker(ops.in(j)[size_t(other)]) < i ? j : -1;
}

// The op that sums the value over its rows, with the leaves of `params`; or -1.
inline int32_t summer_of(const Readers& ops, int32_t value, int32_t params) {
  const orr_op& like = ops.op(params);
  for (int32_t j : ops.of(value))
    if (const orr_op& op = ops.op(j); is_kind(op, "reduce") && attr_text(op, "fn", "") == "sum" &&
                                      attr_int(op, "begin", 0) == 0 && same_leaves(op, like) &&
                                      same_type(op.out[0], like.out[0]) &&
                                      ops.at(j).call == ops.at(params).call)
      return j;
  return -1;
}

// If op i is the gradient of a norm's input, the ops that can be one with it.
inline std::optional<NormGrads> norm_grads_of(const Readers& ops, int32_t i) {
  if (!is_kind(ops.op(i), "layernorm_grad") && !is_kind(ops.op(i), "rmsnorm_grad")) return {};
  NormGrads found{i, norm_params_of(ops, i)};
  if (found.params < 0) return {};
  found.adder = adder_of(ops, i);
  found.summer = summer_of(ops, ops.at(found.adder < 0 ? i : found.adder).out[0], found.params);
  return found;
}

inline void take(const orr_claims& claims, const std::vector<int32_t>& ops) {
  claims.take(claims.arg, ops.data(), int32_t(ops.size()));
}

// Claims the gradients of every norm. Such a kernel reads the rows once.
inline void claim_norm_grads(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  for (int32_t i = 0; i < ops.size(); ++i)
    if (const auto found = norm_grads_of(ops, i)) take(claims, found->all());
}

// -- sums -----------------------------------------------------------------------------------------

// Whether the op sums all elements of a real tensor, which are no samples, to their dtype or f32.
inline bool is_whole_sum(const orr_op& op) {
  if (!is_kind(op, "reduce") || !attr_text(op, "fn", "").starts_with("sum") || attr(op, "leaf_n"))
    return false;
  const int32_t from = op.in[0].dtype, to = op.out[0].dtype;
  return op.out[0].rank == 0 && from >= ORR_F32 && from <= ORR_F16 && (from == to || to == ORR_F32);
}

// The whole sums from op `first` on that it can be one op with, itself included: those of one kind
// and dtype whose tensors are known where it is.
inline std::vector<int32_t> whole_sums_of(const Readers& ops, int32_t first) {
  const orr_op& like = ops.op(first);
  std::vector<int32_t> found;
  for (int32_t i = first; i < ops.size(); ++i)
    if (const orr_op& op = ops.op(i); is_whole_sum(op) && op.in[0].dtype == like.in[0].dtype &&
                                      op.out[0].dtype == like.out[0].dtype &&
                                      attr_text(op, "fn", "") == attr_text(like, "fn", "") &&
                                      ops.at(i).call == ops.at(first).call &&
                                      ops.maker(ops.at(i).in[0]) < first)
      found.push_back(i);
  return found;
}

// Claims sums over whole tensors, such as the squares of all gradients, several at a time.
inline void claim_sums(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  std::vector<char> named(size_t(ops.size()));
  for (int32_t i = 0; i < ops.size(); ++i) {
    if (named[size_t(i)] || !is_whole_sum(ops.op(i))) continue;
    const std::vector<int32_t> sums = whole_sums_of(ops, i);
    if (sums.size() < 2) continue;
    take(claims, sums);
    for (int32_t j : sums) named[size_t(j)] = true;
  }
}

// -- a pointwise op and what reads its rows -------------------------------------------------------

// The places of the ops that pointwise_next (ops.h) stands for.
struct RowsNext {
  int32_t first, next;
};

// Whether the op is a norm, or the sum over all rows of more than one element, or over those of
// each sample.
inline bool reads_rows(const orr_op& op) {
  if (!is_kind(op, "reduce")) return is_kind(op, "layernorm") || is_kind(op, "rmsnorm");
  const orr_tensor& x = op.in[0];
  return attr_text(op, "fn", "") == "sum" && attr_int(op, "end", 0) + 1 == x.rank &&
         x.dims[x.rank - 1] > 1;
}

// If op `next` reads the rows that a pointwise op makes, and all else that it reads is known there,
// the two.
inline std::optional<RowsNext> rows_next_of(const Readers& ops, int32_t next) {
  if (!reads_rows(ops.op(next))) return {};
  const std::vector<int32_t> read = ops.in(next);
  const int32_t first = ops.maker(read[0]);
  if (first < 0 || !is_kind(ops.op(first), "pointwise") || ops.at(first).call != ops.at(next).call)
    return {};
  const bool known =
      std::all_of(read.begin() + 1, read.end(), [&](int32_t v) { return ops.maker(v) < first; });
  return known ? std::optional(RowsNext{first, next}) : std::nullopt;
}

// Whether something else than ops reads what op i makes, such as the next step a state.
inline bool makes_results(const Readers& ops, int32_t i) {
  const int32_t* made = ops.at(i).out;
  return std::any_of(made, made + ops.op(i).n_out,
                     [&](int32_t v) { return ops.is_read_outside(v); });
}

// Claims pointwise ops with what reads their rows, as a residual and its norm. Such a kernel does
// not read again what it has just written. An op that makes states is left alone: it can replace
// them where they are.
inline void claim_rows_next(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  for (int32_t j = 0; j < ops.size(); ++j)
    if (const auto found = rows_next_of(ops, j); found && !makes_results(ops, found->first))
      take(claims, {found->first, found->next});
}

// The places of two such ops and of a further sum: of a tensor that op `first` reads, over the same
// samples as `next` sums what `first` makes of it.
struct TwoSums {
  int32_t first, next, also;

  std::vector<int32_t> all() const {
    std::vector<int32_t> found = {first, next, also};
    std::sort(found.begin(), found.end());
    return found;
  }
};

// Whether two ops are the same sums of tensors of one type.
inline bool sum_alike(const orr_op& a, const orr_op& b) {
  const auto same = [&](const char* name) { return attr_int(a, name, 0) == attr_int(b, name, 0); };
  return is_kind(a, "reduce") && is_kind(b, "reduce") &&
         attr_text(a, "fn", "") == attr_text(b, "fn", "") && same("begin") && same("end") &&
         same_leaves(a, b) && same_type(a.in[0], b.in[0]) && same_type(a.out[0], b.out[0]);
}

// If op `next` sums the rows that a pointwise op makes, and another op those of an input of that,
// the three.
inline std::optional<TwoSums> two_sums_of(const Readers& ops, int32_t next) {
  const auto found = rows_next_of(ops, next);
  if (!found || !is_kind(ops.op(next), "reduce")) return {};
  for (int32_t v : ops.in(found->first))
    for (int32_t j : ops.of(v))
      if (sum_alike(ops.op(j), ops.op(next)) && ops.at(j).call == ops.at(next).call)
        return TwoSums{found->first, next, j};
  return {};
}

// Claims such sums, as of the gradients of a batch normalization's weight and bias. Such a kernel
// reads the rows once.
inline void claim_two_sums(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  for (int32_t j = 0; j < ops.size(); ++j)
    if (const auto found = two_sums_of(ops, j); found && !makes_results(ops, found->first))
      take(claims, found->all());
}

// -- a pointwise op and sums of its elements that are not stored ----------------------------------

// Whether the op sums neighbouring dims before others: those of an image for each sample and
// channel, or all samples and places for each element of a window and channel.
inline bool sums_before(const orr_op& op) {
  if (!is_kind(op, "reduce") || attr_text(op, "fn", "") != "sum" || reads_rows(op)) return false;
  const orr_tensor& x = op.in[0];
  const int64_t begin = attr_int(op, "begin", 0), end = attr_int(op, "end", 0);
  int64_t columns = 1;
  for (int64_t d = end; d < x.rank; ++d) columns *= x.dims[d];
  return begin < end && columns > 1 && (begin == 0 || !attr(op, "leaf_n"));
}

// Whether one op alone reads the value.
inline bool is_read_by_one(const Readers& ops, int32_t value) {
  return ops.of(value).size() == 1 && !ops.is_read_outside(value);
}

// The pointwise op whose only result op `next` reads, and nothing else; or -1.
inline int32_t made_for(const Readers& ops, int32_t next) {
  const int32_t value = ops.in(next)[0], first = ops.maker(value);
  const bool alone = first >= 0 && is_kind(ops.op(first), "pointwise") &&
                     ops.op(first).n_out == 1 && is_read_by_one(ops, value) &&
                     ops.at(first).call == ops.at(next).call;
  return alone ? first : -1;
}

// The pointwise op whose only result op `next` sums so, and nothing else reads; or -1.
inline int32_t summed_before(const Readers& ops, int32_t next) {
  return sums_before(ops.op(next)) ? made_for(ops, next) : -1;
}

// Claims such sums, as of statistics of images, or the gradient of weights of single channels.
inline void claim_sums_before(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  for (int32_t j = 0; j < ops.size(); ++j)
    if (const int32_t first = summed_before(ops, j); first >= 0) take(claims, {first, j});
}

// -- sums and the pointwise op that reads them ----------------------------------------------------

// The places of a sum over dims before others, of the pointwise op `first` that makes its terms and
// nothing else (-1: none), and of the one that reads the sum, perhaps behind reshapes, as value
// `read`. Others read the sum as value `kept`; -1: none do.
struct SumNext {
  int32_t first, sum, next, read, kept = -1;
  std::vector<int32_t> views = {};

  std::vector<int32_t> all() const {
    std::vector<int32_t> found = views;
    if (first >= 0) found.push_back(first);
    found.push_back(sum), found.push_back(next);
    std::sort(found.begin(), found.end());
    return found;
  }
};

// Whether the op adds neighbouring dims before others. Sums over the samples of a batch have
// leaves, and ranks may exchange them.
inline bool sums_columns(const orr_op& op) {
  if (!is_kind(op, "reduce") || attr_text(op, "fn", "") != "sum" || attr(op, "leaf_n"))
    return false;
  const orr_tensor& x = op.in[0];
  int64_t columns = 1;
  for (int64_t d = attr_int(op, "end", 0); d < x.rank; ++d) columns *= x.dims[d];
  return attr_int(op, "begin", 0) < attr_int(op, "end", 0) && columns > 1;
}

// Notes as what value others read the sum. Returns whether there is one at most.
inline bool note_kept(const Readers& ops, SumNext& found) {
  const std::vector<int32_t> own = found.all();
  std::vector<int32_t> makers = found.views;
  makers.push_back(found.sum);
  int32_t count = 0;
  for (const int32_t i : makers) {
    const int32_t value = ops.at(i).out[0];
    const std::vector<int32_t>& readers = ops.of(value);
    const bool read = std::any_of(readers.begin(), readers.end(), [&](int32_t j) {
      return !std::binary_search(own.begin(), own.end(), j);
    });
    if (read || ops.is_read_outside(value)) found.kept = value, ++count;
  }
  return count < 2;
}

// If op `next` is pointwise and reads such a sum, the ops.
inline std::optional<SumNext> sum_next_of(const Readers& ops, int32_t next) {
  if (!is_kind(ops.op(next), "pointwise")) return {};
  for (const int32_t read : ops.in(next)) {
    SumNext found{-1, ops.maker(read), next, read};
    while (found.sum >= 0 && is_kind(ops.op(found.sum), "reshape")) {
      found.views.push_back(found.sum);
      found.sum = ops.maker(ops.in(found.sum)[0]);
    }
    if (found.sum < 0 || !sums_columns(ops.op(found.sum))) continue;
    found.first = made_for(ops, found.sum);
    if (note_kept(ops, found)) return found;
  }
  return {};
}

// Claims such ops, as the statistics of a batch normalization and what is made of them. A kernel
// then computes few numbers where it has their sum, and saves a launch. Terms of a further sum are
// left to that.
inline void claim_sums_next(const orr_group& program, const orr_claims& claims) {
  const Readers ops(program);
  const auto makes_terms = [&](int32_t i) {
    const std::vector<int32_t>& readers = ops.of(ops.at(i).out[0]);
    return std::any_of(readers.begin(), readers.end(), [&](int32_t j) {
      return is_kind(ops.op(j), "reduce") && made_for(ops, j) == i;
    });
  };
  for (int32_t j = 0; j < ops.size(); ++j)
    if (const auto found = sum_next_of(ops, j);
        found && !makes_results(ops, j) && !makes_results(ops, found->sum) && !makes_terms(j))
      take(claims, found->all());
}

}  // namespace orr
