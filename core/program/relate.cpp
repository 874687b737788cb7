// SPDX-License-Identifier: Apache-2.0
#include "program/relate.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "program/custom_kind.h"
#include "program/op.h"

namespace orrery {
namespace {

bool any_in(const Program& p, const Op& op, Batch batch) {
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == batch; });
}

void relate_all(Program& p, const Op& op, Batch batch) {
  for (ValueId v : op.out) p.mutable_value(v).set_batch(batch);
}

// Whether the program shows that x is zero: it is made of the constant 0 by moving elements.
bool is_zero(const Program& p, ValueId x) {
  for (OpId maker = p.value(x).producer; maker != kNone; maker = p.value(x).producer) {
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    if (op.kind == "pointwise" && op.in.empty())
      return op.expr.instrs.back().fn == ORR_FN_CONST && op.expr.instrs.back().imm == 0;
    const bool same = op.kind == "reshape" || op.kind == "transpose" ||
                      (op.kind == "pointwise" && op.expr.instrs.size() == 1);
    if (!same) return false;
    x = op.in[0];
  }
  return false;
}

// The inputs in which an op is linear together, whatever values the other inputs have. Gradients of
// ops are linear in the cotangent, their first input. Empty: the kind is not known here.
std::vector<size_t> linear_inputs(const Op& op) {
  static const std::map<std::string, std::vector<size_t>> some = {
      {"gather", {0}},         {"scatter_add", {1}},
      {"slice_at", {0}},       {"update_slice", {0, 1}},
      {"softmax_grad", {0}},   {"layernorm_grad", {0}},
      {"rmsnorm_grad", {0}},   {"norm_param_grad", {0}},
      {"attention_grad", {0}}, {"cross_entropy_grad", {0}}};
  static const std::set<std::string> moves = {"reshape",       "transpose", "split",
                                              "windows",       "fold",      "concat",
                                              "stop_gradient", "vary",      "unshard"};
  if (const auto at = some.find(op.kind); at != some.end()) return at->second;
  const bool sum = op.kind == "reduce" && attr_text(op.attrs, "fn", "") == "sum";
  std::vector<size_t> all;
  if (sum || moves.count(op.kind) || is_exchange(op.kind))
    for (size_t i = 0; i < op.in.size(); ++i) all.push_back(i);
  return all;
}

// The same question as is_linear, answered by linear_inputs. varies[i]: input i is one of x.
bool is_linear_by_kind(const Program& p, const Op& op, const std::vector<char>& varies,
                       bool homogeneous) {
  const std::vector<size_t> places = linear_inputs(op);
  for (size_t i = 0; i < op.in.size(); ++i) {
    const bool linear = std::count(places.begin(), places.end(), i) > 0;
    if (varies[i] ? !linear : linear && homogeneous && !is_zero(p, op.in[i])) return false;
  }
  return true;
}

bool is_linear_choice(const Op& op, const std::vector<char>& varies, bool homogeneous) {
  const orr_instr& last = op.expr.instrs.back();
  auto from = [&](int32_t r) { return op.expr.instrs[static_cast<size_t>(r)]; };
  auto varying = [&](int32_t r) {
    return from(r).fn == ORR_FN_INPUT && varies[static_cast<size_t>(from(r).a)];
  };
  auto fits = [&](int32_t r) {
    return varying(r) || !homogeneous || (from(r).fn == ORR_FN_CONST && from(r).imm == 0);
  };
  return !varying(last.a) && fits(last.b) && fits(last.c);
}

// Whether the op f(x, c) is linear in x, the inputs for which `varies` is true, for any values c of
// the others. With `homogeneous` also whether f(0, c) = 0, so that it may be applied to each
// summand of a sum.
bool is_linear(const Program& p, const Op& op, const std::vector<char>& varies, bool homogeneous) {
  if (op.kind == "matmul") return varies[0] != varies[1];
  if (op.kind == "gather_matmul" || op.kind == "scatter_matmul")
    return varies[0] != varies[1] && !varies[2];
  if (op.kind != "pointwise") return is_linear_by_kind(p, op, varies, homogeneous);
  const orr_instr& last = op.expr.instrs.back();
  auto from = [&](int32_t r) {
    const orr_instr& i = op.expr.instrs[static_cast<size_t>(r)];
    return i.fn == ORR_FN_INPUT && varies[static_cast<size_t>(i.a)];
  };
  if (last.fn == ORR_FN_INPUT) return true;
  if (last.fn == ORR_FN_MUL) return from(last.a) != from(last.b);
  if (last.fn == ORR_FN_DIV) return from(last.a) && !from(last.b);
  if (last.fn == ORR_FN_SELECT) return is_linear_choice(op, varies, homogeneous);
  if (!scalar_fn(last.fn).linear || !is_real(last.dtype)) return false;
  const bool all = std::all_of(varies.begin(), varies.end(), [](char v) { return v != 0; });
  const bool constants = std::any_of(op.expr.instrs.begin(), op.expr.instrs.end(),
                                     [](const orr_instr& i) { return i.fn == ORR_FN_CONST; });
  return !homogeneous || (all && !constants);
}

// Checks that the batch dim is the outermost of the dims that an op sums over: a kernel needs the
// microbatches as consecutive pieces.
void check_sum(const Program& p, const Op& op) {
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch() != Batch::sharded) continue;
    // A product sums one dim; those before the last two are groups, which have sums of their own.
    const size_t outside = op.kind == "matmul" ? 0 : static_cast<size_t>(v.batch_dim());
    for (size_t d = 0; d < outside; ++d)
      if (v.type.dims[d] > 1)
        p.fail_here(fmt::format("{}: cannot sum dim {} of {} over the batch: put the batch first",
                                op.kind, v.batch_dim() + 1, to_string(v.type.dims)));
  }
}

// The factor that the batch dims of all inputs belong to.
int batch_factor(const Program& p, const Op& op, const Sharding& s) {
  int factor = kNone;
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch() != Batch::sharded) continue;
    int f = s.in[i][static_cast<size_t>(v.batch_dim())];
    if (op.kind == "concat" && attr_int(op.attrs, "dim", 0) == v.batch_dim())
      p.fail_here(fmt::format(
          "concat: joins tensors along dim {} of {}, the batch; two for each sample, one after "
          "another, are orrery.stack({{a, b}}, 2):flatten(1, 2) of tensors [batch, ...], which "
          "y:view(batch, 2, ...) takes apart again",
          v.batch_dim() + 1, to_string(v.type.dims)));
    if (f == kNone || (factor != kNone && f != factor))
      p.fail_here(fmt::format(
          "{}: works across the samples of a batch along dim {} of {}, but every "
          "microbatch must be computable alone; read all samples as x:all_gather(\"batch\"), make "
          "what meets one sample, with batch fields of [groups, samples of a group, ...], or keep "
          "earlier samples' values in a buffer",
          op.kind, v.batch_dim() + 1, to_string(v.type.dims)));
    factor = f;
  }
  for (size_t i = 0; i < op.in.size(); ++i) {
    const Value& v = p.value(op.in[i]);
    if (v.batch() == Batch::sharded) continue;
    for (size_t d = 0; d < s.in[i].size(); ++d)
      if (s.in[i][d] == factor && v.type.dims[d] > 1)
        p.fail_here(fmt::format(
            "{}: operand {} {}{} does not depend on the batch but has the batch's extent in dim "
            "{}; "
            "if its rows belong to the samples in their order, put them first and write "
            "x:for_each_sample() where it is made",
            op.kind, i + 1, to_string(v.type),
            v.site.line.empty() ? "" : ", made at " + v.site.line + ",", d + 1));
  }
  return factor;
}

void relate_reshape_of_one(Program& p, const Op& op) {
  const Value& x = p.value(op.in[0]);
  Value& y = p.mutable_value(op.out[0]);
  y.set_batch(Batch::sharded, dim_of_one(x.type.dims, y.type.dims, x.batch_dim()));
  if (y.batch_dim() == kNone)
    p.fail_here(fmt::format("reshape: {} has no place for dim {} of {}, the batch: keep that dim",
                            to_string(y.type.dims), x.batch_dim() + 1, to_string(x.type.dims)));
}

// The results of a plugin's op are either all sums over the batch, or none of them is.
void check_custom(const Program& p, const Op& op) {
  const auto is_sum = [&](ValueId v) { return p.value(v).batch() == Batch::partial; };
  if (!std::all_of(op.out.begin(), op.out.end(),
                   [&](ValueId v) { return is_sum(v) == is_sum(op.out[0]); }))
    p.fail_here(op.kind +
                ": makes results of each sample and sums over the batch: make two ops of it");
}

void relate_samples(Program& p, const Op& op) {
  if (op.kind == "reshape" && p.batch_size() == 1) return relate_reshape_of_one(p, op);
  Sharding s = op_def(op.kind).sharding(args_of(p, op), out_types(p, op));
  const int factor = batch_factor(p, op, s);
  const bool custom = custom_kind(op.kind) != nullptr;
  for (size_t j = 0; j < op.out.size(); ++j) {
    Value& v = p.mutable_value(op.out[j]);
    auto at = std::find(s.out[j].begin(), s.out[j].end(), factor);
    if (at != s.out[j].end()) {
      v.set_batch(Batch::sharded, static_cast<int32_t>(at - s.out[j].begin()));
      if (v.type.dims[static_cast<size_t>(v.batch_dim())] % std::max<int64_t>(p.batch_size(), 1))
        p.fail_here(op.kind + ": cuts the batch dim into pieces: " + to_string(v.type.dims));
    } else if (custom && !s.sums) {
      p.fail_here(op.kind + ": gives no result for each sample; its factors leave the batch out");
    } else if (!s.sums) {
      p.fail_here(
          "the " + attr_text(op.attrs, "fn", op.kind) +
          " over the batch is known only after all microbatches and cannot be used in a model; "
          "take that of x:all_gather(\"batch\")");
    } else {
      if (!custom) check_sum(p, op);
      v.set_batch(Batch::partial);
    }
  }
  if (custom) check_custom(p, op);
}

}  // namespace

// Handles ops that lead from samples to the whole batch and back (ops/batch.cpp). Returns whether
// `op` is one.
static bool relate_whole_batch(Program& p, const Op& op) {
  if (op.kind == "batch_sum") return true;
  if (op.kind == "batch_gather" || op.kind == "microbatch_sum") {
    const Value& x = p.value(op.in[0]);
    if (x.batch() != Batch::sharded || x.batch_dim() != 0)
      p.fail_here(op.kind + ": " + to_string(x.type) + " is not made of samples along dim 1");
    if (op.kind == "batch_gather") return true;
  } else if (op.kind != "batch_slice" && op.kind != "sample_index") {
    return false;
  }
  Value& y = p.mutable_value(op.out[0]);
  y.set_batch(Batch::sharded, 0);
  return true;
}

void relate_to_batch(Program& p, const Op& op) {
  if (relate_whole_batch(p, op)) return;
  const bool sharded = any_in(p, op, Batch::sharded), partial = any_in(p, op, Batch::partial),
             mean = any_in(p, op, Batch::mean);
  if (op.kind == "batch_mean") return relate_all(p, op, Batch::mean);
  if (op.kind == "user_gradient") {
    const Value& in = p.value(op.in[0]);
    p.mutable_value(op.out[0]).set_batch(in.batch(), in.batch_dim());
    return;
  }
  if (op.kind == "total" || !(sharded || partial || mean)) return;
  if (sharded) return relate_samples(p, op);
  // Backward ops are linear in their cotangents, whatever their kind.
  std::vector<char> varies;
  for (ValueId v : op.in) varies.push_back(p.value(v).batch() == Batch::partial);
  const bool sums = !mean && (op.phase == Phase::backward || is_linear(p, op, varies, true));
  relate_all(p, op, sums ? Batch::partial : Batch::mean);
}

bool is_linear_in(const Program& p, const Op& op, const std::vector<char>& varies) {
  return is_linear(p, op, varies, false);
}

std::string name_of(const Op& op) {
  return op.kind == "pointwise" ? scalar_fn(op.expr.instrs.back().fn).name
         : op.kind == "reduce"  ? attr_text(op.attrs, "fn", "")
                                : op.kind;
}

}  // namespace orrery
