// SPDX-License-Identifier: Apache-2.0
//
// The rows of the op table for every kind but pointwise.
#include "program/build.h"
#include "table.h"

namespace program_test {
namespace {

using namespace orrery;

Build op(const std::string& kind, const Attrs& attrs = {}) {
  return [=](Program& p, const Ids& in) { return p.add(kind, in, attrs); };
}

Entry row(const std::string& name, const std::vector<In>& in, const std::vector<Type>& out,
          Build build) {
  Entry e;
  e.name = name, e.kind = name.substr(0, name.find(' '));
  e.in = in, e.out = out, e.build = std::move(build);
  return e;
}
Entry row(const std::string& name, const std::vector<In>& in, const std::vector<Type>& out,
          const Attrs& attrs = {}) {
  return row(name, in, out, op(name.substr(0, name.find(' ')), attrs));
}

In real(Dims dims, double lo = -2, double hi = 2) { return {In::uniform, std::move(dims), lo, hi}; }
In index(Dims dims, double n) { return {In::whole, std::move(dims), 0, n, ORR_I64}; }
Type f32(Dims dims) { return {ORR_F32, std::move(dims)}; }
Type i64(Dims dims) { return {ORR_I64, std::move(dims)}; }
Type same(Dims dims) { return {0, std::move(dims)}; }

Build matmul(bool ta, bool tb) {
  return [=](Program& p, const Ids& in) { return Ids{build::matmul(p, in[0], in[1], ta, tb)}; };
}

void add_matmul(std::vector<Entry>& rows) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      Entry e = row(std::string("matmul ") + (ta ? "t" : "n") + (tb ? "t" : "n"),
                    {real(ta ? Dims{4, 6} : Dims{6, 4}), real(tb ? Dims{3, 4} : Dims{4, 3})},
                    {same({6, 3})}, matmul(ta, tb));
      e.bad = {{{f32({6, 4}), f32({5, 3})}, op("matmul"), "inner sizes differ: [6,4] x [5,3]"},
               {{f32({4}), f32({4, 3})}, op("matmul"), "needs at least two dims on both sides"},
               {{f32({6, 4}), {ORR_F64, {4, 3}}}, op("matmul"), "one dtype, not f32 and f64"},
               {{f32({2, 6, 4}), f32({3, 4, 5})}, op("matmul"), "leading sizes differ"}};
      rows.push_back(e);
      Entry g =
          row("matmul batched " + e.name.substr(7),
              {real(ta ? Dims{6, 4, 5} : Dims{6, 5, 4}), real(tb ? Dims{6, 3, 4} : Dims{6, 4, 3})},
              {same({6, 5, 3})}, matmul(ta, tb));
      g.bad = e.bad;
      g.refuses_sum = "put the batch first";
      rows.push_back(g);
      Entry s = row("matmul shared " + e.name.substr(7),
                    {real(ta ? Dims{6, 4, 5} : Dims{6, 5, 4}), real(tb ? Dims{3, 4} : Dims{4, 3})},
                    {same({6, 5, 3})}, matmul(ta, tb));
      s.bad = e.bad;
      s.refuses_sum = "put the batch first";
      rows.push_back(s);
    }
}

// gelu(a b + bias) and the product itself.
Ids matmul_then_gelu(Program& p, const Ids& in) {
  Op op;
  op.kind = "matmul_pointwise", op.in = in;
  const int32_t dtype = p.type(in[0]).dtype;
  const int32_t product = op.expr.push(ORR_FN_INPUT, dtype, 0),
                bias = op.expr.push(ORR_FN_INPUT, dtype, 1);
  op.expr.outputs = {
      op.expr.push(ORR_FN_GELU, dtype, op.expr.push(ORR_FN_ADD, dtype, product, bias)), product};
  p.append(op);
  return p.ops().back().out;
}

void add_matmul_pointwise(std::vector<Entry>& rows) {
  for (const Dims& a : {Dims{6, 4}, Dims{6, 5, 4}}) {
    Dims out = a;
    out.back() = 33;
    Entry e = row("matmul_pointwise " + to_string(a), {real(a), real({4, 33}), real({33})},
                  {same(out), same(out)}, matmul_then_gelu);
    e.gradient = false, e.refuses = "matmul_pointwise has no derivative";
    e.bad = {{{f32({6, 4}), f32({4, 3})},
              op("matmul_pointwise"),
              "is made of a matmul and a pointwise op when a step is lowered"}};
    rows.push_back(e);
  }
}

void add_reduce(std::vector<Entry>& rows) {
  struct Range {
    int64_t begin, end;
    Dims out;
  };
  for (const char* fn : {"sum", "sumsq", "max", "min"})
    for (const Range& r :
         {Range{0, 1, {4, 3}}, Range{1, 2, {6, 3}}, Range{1, 3, {6}}, Range{0, 3, {}}}) {
      Dims over;
      for (int64_t d = r.begin; d < r.end; ++d) over.push_back(d);
      Entry e = row(
          std::string("reduce ") + fn + " " + to_string(over), {real({6, 4, 3})}, {same(r.out)},
          [=](Program& p, const Ids& in) { return Ids{build::reduce(p, fn, in[0], over, false)}; });
      e.bad = {
          {{f32({6})},
           [=](Program& p, const Ids& in) { return Ids{build::reduce(p, fn, in[0], {1}, false)}; },
           "there is no dim 2 in [6]"},
          {{f32({6})},
           op("reduce", {{"fn", std::string(fn)}, {"begin", int64_t{0}}, {"end", int64_t{2}}}),
           "there are no dims 1 to 2 in f32[6]"},
          {{{ORR_BOOL, {6}}},
           op("reduce", {{"fn", std::string(fn)}, {"begin", int64_t{0}}, {"end", int64_t{1}}}),
           "cannot reduce bool"}};
      if (fn[0] == 'm') e.refuses_sum = "over the batch is known only after all microbatches";
      rows.push_back(e);
    }
}

void add_choice(std::vector<Entry>& rows) {
  rows.push_back(row("argmax", {real({6, 5})}, {i64({6})}));
  rows.back().bad = {{{f32({})}, op("argmax"), "needs at least one dim, not f32[]"}};
  rows.back().gradient = false;
  rows.push_back(row("topk", {real({6, 5})}, {same({6, 2}), i64({6, 2})}, {{"k", int64_t{2}}}));
  rows.back().bad = {
      {{f32({5})}, op("topk", {{"k", int64_t{6}}}), "cannot take the top 6 of f32[5]"}};
  rows.push_back(row("iota", {}, {{ORR_I64, {5}}},
                     [](Program& p, const Ids&) { return Ids{build::iota(p, 5, ORR_I64)}; }));
  rows.back().bad = {{{},
                      [](Program& p, const Ids&) { return Ids{build::iota(p, -1, ORR_I64)}; },
                      "cannot count to -1"}};
  rows.back().gradient = rows.back().sharding = false;
  rows.push_back(row("categorical", {real({6, 5})}, {i64({6})},
                     [](Program& p, const Ids& in) { return Ids{build::categorical(p, in[0])}; }));
  rows.back().bad = {{{f32({})},
                      [](Program& p, const Ids& in) { return Ids{build::categorical(p, in[0])}; },
                      "needs at least one dim, not f32[]"}};
  rows.back().gradient = false;
}

void add_norms(std::vector<Entry>& rows) {
  Attrs eps{{"eps", 1e-3}}, rms{{"rms", int64_t{1}}};
  In x = real({6, 2, 5}), c = real({5}), rstd = real({6, 2}, 0.5, 2),
     mean = real({6, 2}, -0.5, 0.5);
  Type y = same({6, 2, 5}), w = same({5}), r = same({6, 2});
  rows.push_back(row("softmax", {x}, {y}));
  rows.back().bad = {{{f32({})}, op("softmax"), "needs a real tensor with at least one dim"},
                     {{i64({3})}, op("softmax"), "not i64[3]"}};
  rows.push_back(row("softmax_grad", {x, real({6, 2, 5}, 0, 1)}, {y}));
  rows.push_back(row("layernorm", {x, c, c}, {y, r, r}, eps));
  rows.back().bad = {{{f32({6, 5}), f32({4}), f32({5})}, op("layernorm", eps), "weight is f32[4]"},
                     {{f32({}), f32({}), f32({})}, op("layernorm", eps), "needs a real tensor"}};
  rows.push_back(row("rmsnorm", {x, c}, {y, r}, eps));
  rows.back().bad = {{{f32({6, 5}), f32({6})}, op("rmsnorm", eps), "weight is f32[6]"}};
  rows.push_back(row("layernorm_grad", {x, x, c, mean, rstd}, {y}));
  rows.push_back(row("rmsnorm_grad", {x, x, c, rstd}, {y}));
  rows.push_back(row("norm_param_grad", {x, x, mean, rstd}, {w, w}));
  rows.back().refuses_sum = "put the batch first";
  rows.push_back(row("norm_param_grad rms", {x, x, rstd}, {w}, rms));
  rows.back().refuses_sum = "put the batch first";
}

// Fewer heads of keys and values, and windows.
void add_attention_in_groups(std::vector<Entry>& rows) {
  const In q = real({6, 3, 4}), few = real({6, 5, 2}), k = real({6, 5, 4});
  const Type o = same({6, 3, 4}), lse = same({6, 2, 3});
  const auto add = [&](const std::string& note, const In& kv, const Attrs& attrs) {
    rows.push_back(row("attention " + note, {q, kv, kv}, {o, lse}, attrs));
    rows.push_back(row("attention_grad " + note, {q, q, kv, kv, q, real({6, 2, 3}, 2, 3)},
                       {o, same(kv.dims), same(kv.dims)}, attrs));
  };
  const Attrs heads{{"heads", int64_t{2}}, {"scale", 0.7}};
  Attrs grouped = heads, near = heads, both = heads;
  grouped.set("kv_heads", int64_t{1});
  near.set("window", int64_t{2});
  both.set("kv_heads", int64_t{1}), both.set("window", int64_t{2}), both.set("causal", int64_t{1});
  add("grouped", few, grouped);
  rows[rows.size() - 2].bad = {{{f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 5, 4})},
                                op("attention", grouped),
                                "1 heads as wide as those of q have 2 columns"},
                               {{f32({6, 3, 4}), f32({6, 5, 2}), f32({6, 5, 2})},
                                op("attention", {{"heads", int64_t{4}}, {"kv_heads", int64_t{3}}}),
                                "4 heads are no multiple of 3"}};
  for (const auto& [note, kv, attrs] :
       {std::tuple{"near", k, near}, std::tuple{"grouped near causal", few, both}}) {
    add(note, kv, attrs);
    rows[rows.size() - 2].bad = {{{f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 5, 4})},
                                  op("attention", {{"window", int64_t{-1}}}),
                                  "window is -1, expected 1 or more"}};
  }
}

void add_attention(std::vector<Entry>& rows) {
  In q = real({6, 3, 4}), k = real({6, 5, 4});
  Type o = same({6, 3, 4}), kv = same({6, 5, 4});
  for (int64_t causal : {0, 1}) {
    Attrs attrs{{"heads", int64_t{2}}, {"causal", causal}, {"scale", 0.7}};
    std::string note = causal ? " causal" : "";
    rows.push_back(row("attention" + note, {q, k, k}, {o, same({6, 2, 3})}, attrs));
    rows.back().bad = {{{f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 4, 4})},
                        op("attention", attrs),
                        "needs q [B,T,C]"},
                       {{f32({6, 3, 5}), f32({6, 5, 5}), f32({6, 5, 5})},
                        op("attention", attrs),
                        "width 5 does not divide into 2 heads"}};
    rows.push_back(
        row("attention_grad" + note, {q, q, k, k, q, real({6, 2, 3}, 2, 3)}, {o, kv, kv}, attrs));
  }
  add_attention_in_groups(rows);
  rows.push_back(
      row("attention dropout", {q, k, k}, {o, same({6, 2, 3})}, [](Program& p, const Ids& in) {
        build::attention(p, in[0], in[1], in[2],
                         {.heads = 2, .causal = true, .scale = 0.7, .dropout = 0.3});
        return p.ops().back().out;
      }));
  rows.back().bad = {{{f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 5, 4})},
                      op("attention", {{"heads", int64_t{2}}, {"dropout", 0.3}}),
                      "dropout 0.3"}};
  rows.back().refuses = "attention with dropout has no second derivative";
}

void add_attention_bias(std::vector<Entry>& rows) {
  In q = real({6, 3, 4}), k = real({6, 5, 4});
  Type o = same({6, 3, 4}), kv = same({6, 5, 4}), lse = same({6, 2, 3});
  Attrs attrs{{"heads", int64_t{2}}, {"causal", int64_t{1}}, {"scale", 0.7}}, grad = attrs;
  grad.set("bias_grad", int64_t{1});
  for (const Dims& dims :
       {Dims{6, 2, 3, 5}, Dims{1, 2, 3, 5}, Dims{6, 1, 1, 5}, Dims{1, 2, 1, 5}}) {
    const std::string note = " bias " + to_string(dims);
    rows.push_back(row("attention" + note, {q, k, k, real(dims)}, {o, lse}, attrs));
    rows.back().bad = {{{f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 5, 4}), f32({6, 2, 3, 1})},
                        op("attention", attrs),
                        "the bias is f32[6,2,3,1], wanted f32[6,2,3,5] or 1 for any of its dims"}};
    rows.push_back(row("attention_grad" + note, {q, q, k, k, q, real({6, 2, 3}, 2, 3), real(dims)},
                       {o, kv, kv, same({6, 2, 3, 5})}, grad));
  }
  // The first query stands before the first key and sees nothing.
  rows.push_back(
      row("attention window", {q, k, k, real({3, 5})}, {o, lse}, [](Program& p, const Ids& in) {
        build::attention(p, in[0], in[1], in[2],
                         {.heads = 2,
                          .causal = true,
                          .mask = p.pointwise(ORR_FN_GT, {in[3], Operand::number(-1.5)}),
                          .bias = in[3],
                          .window = 2,
                          .offset = Operand::number(-1)});
        return p.ops().back().out;
      }));
  auto with = [](build::AttentionOptions o, ValueId build::AttentionOptions::*extra) {
    return [=](Program& p, const Ids& in) {
      build::AttentionOptions all = o;
      if (extra) all.*extra = in[3];
      return Ids{build::attention(p, in[0], in[1], in[2], all)};
    };
  };
  const std::vector<Type> qkv = {f32({6, 3, 4}), f32({6, 5, 4}), f32({6, 5, 4}), f32({5})};
  rows.back().bad = {
      {qkv, with({.heads = 2}, &build::AttentionOptions::mask),
       "the mask is f32[5], expected bool"},
      {qkv, with({.heads = 2, .kv_heads = 3}, nullptr),
       "kv_heads is 3: it must divide the 2 heads"},
      {qkv, with({.heads = 2, .window = -1}, nullptr), "window is -1, expected 1 or more"}};
}

void add_cross_entropy(std::vector<Entry>& rows) {
  In x = real({6, 2, 5}), labels = index({6, 2}, 5), w = real({6, 2}, 0.5, 2);
  Type y = same({6, 2});
  rows.push_back(row("cross_entropy", {x, labels, w}, {y, y}));
  rows.back().bad = {{{f32({6, 5}), i64({5}), f32({6})},
                      op("cross_entropy"),
                      "labels are [5] but logits [6,5] want [6]"},
                     {{f32({6, 5}), f32({6}), f32({6})},
                      op("cross_entropy"),
                      "labels must be i32 or i64, not f32"},
                     {{f32({6, 5}), i64({6}), f32({5})},
                      op("cross_entropy"),
                      "weights are f32[5], wanted f32[6]"}};
  rows.push_back(
      row("cross_entropy_grad", {w, x, labels, w, real({6, 2}, 2, 3)}, {same({6, 2, 5})}));
}

void add_index(std::vector<Entry>& rows) {
  rows.push_back(row("gather", {real({5, 4}), index({6, 2}, 5)}, {same({6, 2, 4})}));
  rows.back().bad = {
      {{f32({5}), i64({6})}, op("gather"), "the table must be [rows, width], not f32[5]"},
      {{f32({5, 4}), f32({6})}, op("gather"), "indices must be i32 or i64, not f32[6]"}};
  rows.push_back(
      row("scatter_add", {index({6}, 5), real({6, 4})}, {same({5, 4})}, {{"rows", int64_t{5}}}));
  rows.back().bad = {{{i64({6}), f32({5, 4})},
                      op("scatter_add", {{"rows", int64_t{5}}}),
                      "needs index [n] and rows [n, width]"}};
  Attrs two{{"dim", int64_t{1}}, {"size", int64_t{2}}}, one{{"dim", int64_t{1}}};
  rows.push_back(row("slice_at", {real({6, 4, 3}), index({}, 3)}, {same({6, 2, 3})}, two));
  rows.back().bad = {
      {{f32({6, 1, 3}), i64({})}, op("slice_at", two), "cannot take 2 of dim 2 of f32[6,1,3]"}};
  rows.push_back(row("update_slice", {real({6, 4, 3}), real({6, 2, 3}), index({}, 3)},
                     {same({6, 4, 3})}, one));
  rows.back().bad = {{{f32({6, 4}), f32({6, 5}), i64({})},
                      op("update_slice", one),
                      "cannot write f32[6,5] along dim 2"}};
}

void add_gather_matmul(std::vector<Entry>& rows) {
  const In x = real({6, 2, 4}), chosen = index({6, 2}, 3);
  const Attrs turned{{"tb", int64_t{1}}}, three{{"matrices", int64_t{3}}};
  rows.push_back(row("gather_matmul", {x, real({3, 4, 5}), chosen}, {same({6, 2, 5})}));
  rows.back().bad = {
      {{f32({6, 4}), f32({3, 5, 4}), i64({6})},
       op("gather_matmul"),
       "inner sizes differ: [6,4] x [3,5,4]"},
      {{f32({6, 4}), f32({4, 5}), i64({6})},
       op("gather_matmul"),
       "needs rows [..., d] and matrices [number, d, outputs], not f32[6,4] and f32[4,5]"},
      {{f32({6, 4}), f32({3, 4, 5}), i64({5})},
       op("gather_matmul"),
       "an index for each row, [6], is wanted, not i64[5]"},
      {{f32({6, 4}), f32({3, 4, 5}), f32({6})}, op("gather_matmul"), "must be i32 or i64, not f32"},
      {{f32({6, 4}), {ORR_F64, {3, 4, 5}}, i64({6})},
       op("gather_matmul"),
       "one dtype, not f32 and f64"}};
  rows.back().refuses_sum = "put the batch first";
  rows.push_back(
      row("gather_matmul turned", {x, real({3, 5, 4}), chosen}, {same({6, 2, 5})}, turned));
  rows.back().bad = {{{f32({6, 4}), f32({3, 4, 5}), i64({6})},
                      op("gather_matmul", turned),
                      "inner sizes differ: [6,4] x [3,4,5], each transposed"}};
  rows.back().refuses_sum = "put the batch first";
  rows.push_back(
      row("scatter_matmul", {real({6, 4}), real({6, 5}), index({6}, 3)}, {same({3, 4, 5})}, three));
  rows.back().bad = {{{f32({6, 4}), f32({5, 5}), i64({6})},
                      op("scatter_matmul", three),
                      "needs rows [n, d] and [n, f] and an index [n]"}};
}

void add_shape(std::vector<Entry>& rows) {
  Attrs merge{{"dims", Dims{12, 3}}}, perm{{"perm", Dims{2, 0, 1}}};
  Attrs sizes{{"dim", int64_t{1}}, {"sizes", Dims{1, 3}}}, dim{{"dim", int64_t{1}}};
  rows.push_back(row("reshape", {real({6, 2, 3})}, {same({12, 3})}, merge));
  rows.back().bad = {
      {{f32({5, 3})}, op("reshape", merge), "cannot see [5,3] (15 elements) as [12,3]"},
      {{f32({36})}, op("reshape", {{"dims", Dims{-12, -3}}}), "as [-12,-3]"}};
  rows.push_back(row("transpose", {real({6, 2, 3})}, {same({3, 6, 2})}, perm));
  rows.back().bad = {
      {{f32({5, 3})}, op("transpose", perm), "not a permutation of the dims of [5,3]"}};
  rows.push_back(row("split", {real({6, 4, 3})}, {same({6, 1, 3}), same({6, 3, 3})}, sizes));
  rows.back().bad = {
      {{f32({6, 5})}, op("split", sizes), "parts [1,3] do not add up to dim 2 of [6,5]"},
      {{f32({6, 4})}, op("split", {{"dim", int64_t{1}}, {"sizes", Dims{-1, 5}}}), "parts [-1,5]"}};
  rows.push_back(row("concat", {real({6, 1, 3}), real({6, 2, 3})}, {same({6, 3, 3})}, dim));
  rows.back().bad = {
      {{f32({6, 1}), f32({5, 1})},
       op("concat", dim),
       "cannot join f32[6,1] and f32[5,1] along dim 2"},
      {{f32({6, 1}), i64({6, 1})}, op("concat", dim), "cannot join f32[6,1] and i64[6,1]"}};
}

Attrs windowed(const char* name, Dims sizes, Dims stride, Dims dilation) {
  return {
      {name, std::move(sizes)}, {"stride", std::move(stride)}, {"dilation", std::move(dilation)}};
}

void add_windows(std::vector<Entry>& rows) {
  const Attrs one = windowed("size", {3}, {2}, {1}), two = windowed("size", {2, 3}, {1, 2}, {2, 1});
  rows.push_back(row("windows 1", {real({6, 7, 2})}, {same({6, 3, 3, 2})}, one));
  rows.back().bad = {{{f32({3})}, op("windows", one), "[3] has no 1 dims before its last"},
                     {{f32({1, 1, 1, 1, 1})},
                      op("windows", windowed("size", {1, 1, 1, 1}, {1}, {1})),
                      "windows are taken of one to three dims, not of 4"},
                     {{f32({6, 2, 2})},
                      op("windows", one),
                      "a window that spans 3 does not fit into a length of 2"},
                     {{f32({6, 7, 2})},
                      op("windows", windowed("size", {3}, {0}, {1})),
                      "stride [0]: 1 sizes of at least 1 are wanted"}};
  rows.push_back(row("windows 2", {real({6, 5, 6, 2})}, {same({6, 3, 2, 2, 3, 2})}, two));
  rows.back().bad = rows[rows.size() - 2].bad;
  const Attrs flat = windowed("length", {8}, {2}, {1}),
              deep = windowed("length", {5, 4, 3}, {2, 1, 3}, {1, 2, 1});
  rows.push_back(row("fold 1", {real({6, 3, 3, 2})}, {same({6, 8, 2})}, flat));
  rows.back().bad = {
      {{f32({6, 3, 3})},
       op("fold", windowed("length", {8, 8}, {2, 2}, {1, 1})),
       "for a length of [8,8], not [6,3,3]"},
      {{f32({6, 2, 3, 2})}, op("fold", flat), "[2] windows are given, a length of [8] has [3]"},
      {{{ORR_BOOL, {6, 3, 3, 2}}}, op("fold", flat), "cannot add bool"}};
  rows.push_back(row("fold 3", {real({6, 2, 2, 1, 3, 2, 2, 2})}, {same({6, 5, 4, 3, 2})}, deep));
  rows.back().bad = rows[rows.size() - 2].bad;
}

// batch_mean divides nothing in the gradient: with a weight of 1 that is what differences say.
void add_batch(std::vector<Entry>& rows) {
  auto sum = [](Program& p, ValueId x) { return build::reduce(p, "sum", x, {}, false); };
  rows.push_back(row("batch_mean", {real({6})}, {same({})}, [=](Program& p, const Ids& in) {
    ValueId total = sum(p, in[0]);
    return Ids{p.add1("batch_mean", {total, p.constant(1, p.type(total).dtype)})};
  }));
  rows.back().bad = {
      {{f32({}), f32({2})}, op("batch_mean"), "sum and weight differ: f32[] and f32[2]"}};
  rows.back().sharding = false;
  rows.push_back(row("total", {real({6})}, {same({})}, [=](Program& p, const Ids& in) {
    return Ids{p.add1("total", {sum(p, in[0])})};
  }));
  rows.back().gradient = rows.back().sharding = false;
  rows.push_back(row("batch_sum", {real({6})}, {same({})}, [=](Program& p, const Ids& in) {
    return Ids{p.add1("batch_sum", {sum(p, in[0])})};
  }));
  rows.back().sharding = false;
  rows.push_back(
      row("user_gradient", {real({6, 3})}, {same({6, 3})}, [](Program& p, const Ids& in) {
        ValueId y = p.pointwise(ORR_FN_MUL, {in[0], in[0]});
        return Ids{p.with_gradient(y, {in[0]}, [&p, x = in[0]](ValueId dy) {
          return std::vector<ValueId>{
              p.pointwise(ORR_FN_MUL, {dy, p.pointwise(ORR_FN_MUL, {x, Operand::number(2)})})};
        })};
      }));
  rows.push_back(row("unshard", {real({6, 3})}, {same({6, 3})}));
  rows.push_back(row("stop_gradient", {real({6, 3})}, {same({6, 3})}));
  rows.back().gradient = false;
}

}  // namespace

std::vector<Entry> kind_entries() {
  std::vector<Entry> rows;
  for (auto add : {add_matmul, add_matmul_pointwise, add_reduce, add_choice, add_norms,
                   add_attention, add_attention_bias, add_cross_entropy, add_index,
                   add_gather_matmul, add_shape, add_windows, add_batch})
    add(rows);
  return rows;
}

}  // namespace program_test
