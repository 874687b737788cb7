// SPDX-License-Identifier: Apache-2.0
//
// Communication as ops: of models, optimizers and strategies, and what lowering puts into a rank's
// program. Every one names a mesh axis (text "axis"; a product stands for all pairs of
// coordinates); the ranks that differ only in their coordinate on it take part. Text "origin" is
// the strategy that asked for it. No kernel computes them, the communicator does.
//
//   all_reduce      x -> y like x: text "fn" = "sum" (default), "min", "max", in rank order
//   all_gather      x -> y[ranks, x's dims...]; with ints "counts" x[counts[me]] -> y[sum of
//                   counts] (no x where that is 0)
//   reduce_scatter  x[ranks, dims...] -> y[dims...]; with "counts" x[sum of counts] ->
//                   y[counts[me]]
//   all_to_all      x[ranks, dims...] -> y like x: y[c] is x[me] of coordinate c
//   sample_exchange x[ranks, dims...] of a rank's own samples -> y[dims...], its part of those of
//                   all ranks of a batch axis; with int "ranks" y -> x. Lowering
//                   alone adds it and makes it an all_to_all (partition/samples/localize.cpp)
//   permute         x -> y like x: coordinate c's goes to ints "to"[c], a permutation
//   broadcast       x -> y like x: the tensor of the rank with coordinate "root"
//   send            x -> nothing; passes alone add it and recv, and say whose peer (CommOp)
//   recv            -> y of ints "dims" and int "dtype"
//
// Two that move nothing: vary(x) is x as a value of each coordinate's own; coordinate() is this
// rank's own, an i64 scalar (int "ranks": how many there are).
//
// unshard(x) names no axis: it is x, whole on every rank from there on. Where ranks have shards of
// x, a pass makes an all_gather of it (partition/shard/unshard.h), elsewhere it is the identity.
// Ints "group" and "each" are a strategy's: what travels together, and whether for each microbatch.
//
// Gradients. The cotangent of a value that is one for all ranks is one for all, that of a varying
// value varies. So vary and the sum of all_reduce are each other's gradient, and what a rank
// gathered gives back its own part of the summed cotangent.
#include <numeric>
#include <stdexcept>

#include "program/build.h"
#include "program/on_parts.h"

namespace orrery {
namespace {

std::vector<Type> infer_same(const OpArgs& args) { return {args.in.at(0)}; }

std::vector<Type> infer_all_reduce(const OpArgs& args) {
  const std::string fn = attr_text(args.attrs, "fn", "sum");
  if (fn != "sum" && fn != "min" && fn != "max")
    throw std::invalid_argument("fn '" + fn + "' is none of sum, min, max");
  return infer_same(args);
}

int64_t sum(const Dims& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::vector<Type> infer_gather(const OpArgs& args) {
  Type x = args.in.at(0);
  if (args.attrs.has("counts")) return {{x.dtype, {sum(attr_ints(args.attrs, "counts"))}}};
  int64_t ranks = attr_int(args.attrs, "ranks", 0);
  if (ranks < 1) throw std::invalid_argument("the number of ranks is missing");
  x.dims.insert(x.dims.begin(), ranks);
  return {x};
}

std::vector<Type> infer_scatter(const OpArgs& args) {
  Type x = args.in.at(0);
  if (args.attrs.has("counts")) {
    Dims counts = attr_ints(args.attrs, "counts");
    if (x.dims != Dims{sum(counts)})
      throw std::invalid_argument(to_string(x) + " is not the concatenation of the parts");
    return {{x.dtype, {counts.at(static_cast<size_t>(attr_int(args.attrs, "me", 0)))}}};
  }
  if (x.dims.empty()) throw std::invalid_argument("a scalar cannot be scattered");
  x.dims.erase(x.dims.begin());
  return {x};
}

std::vector<Type> infer_exchange(const OpArgs& args) {
  if (args.in.at(0).dims.empty()) throw std::invalid_argument("a scalar has no parts to send");
  return {args.in[0]};
}

std::vector<Type> infer_samples(const OpArgs& args) {
  return args.attrs.has("ranks") ? infer_gather(args) : infer_scatter(args);
}

std::vector<Type> infer_coordinate(const OpArgs&) { return {{ORR_I64, {}}}; }

std::vector<Type> infer_send(const OpArgs&) { return {}; }

std::vector<Type> infer_recv(const OpArgs& args) {
  return {{static_cast<int32_t>(attr_int(args.attrs, "dtype", ORR_F32)),
           attr_ints(args.attrs, "dims")}};
}

// Dims keep their meaning; the axis' own dim in front, where there is one, cannot be split further.
Sharding trailing(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s;
  bool flat = args.attrs.has("counts");
  size_t rank = 0;
  for (const Type& t : args.in) rank = std::max(rank, t.dims.size());
  for (const Type& t : out) rank = std::max(rank, t.dims.size());
  auto factors = [&](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    bool carries_axis = (args.kind == "all_gather" || args.kind == "reduce_scatter" ||
                         args.kind == "all_to_all" || args.kind == "sample_exchange") &&
                        t.dims.size() == rank;
    for (size_t i = carries_axis ? 1 : 0; i < f.size() && !flat; ++i)
      f[i] = static_cast<int>(i + rank - t.dims.size());
    return f;
  };
  for (const Type& t : args.in) s.in.push_back(factors(t));
  for (const Type& t : out) s.out.push_back(factors(t));
  return s;
}

// Time on the wire is the simulator's business.
Cost no_flops(const OpArgs& args, const std::vector<Type>& out) {
  Cost cost = touch_cost(args, out);
  cost.flops = 0;
  return cost;
}

// -- gradients ------------------------------------------------------------------------------------

Attrs like(const Op& op, std::initializer_list<const char*> names) {
  Attrs attrs;
  for (const char* name : names)
    if (const Attr* attr = op.attrs.find(name)) attrs.set(name, *attr);
  return attrs;
}

ValueId varied(Gradient& g, const Op& op, ValueId v) {
  return g.p.add1("vary", {v}, like(op, {"axis"}));
}

void refuse(Gradient& g, const Op& op, const std::string& what) {
  if (g.wanted(op.in[0]))
    g.p.fail_here(what + " has no gradient: let none through, with :stop_gradient()");
}

void vary_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0]))
    g.add(op.in[0], g.p.add1("all_reduce", {g.dy()}, like(op, {"axis", "origin"})));
}

void unshard_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.dy());
}

void all_reduce_gradient(Gradient& g, const Op& op) {
  const std::string fn = attr_text(op.attrs, "fn", "sum");
  if (fn != "sum") return refuse(g, op, "all_reduce(\"" + fn + "\")");
  if (g.wanted(op.in[0])) g.add(op.in[0], varied(g, op, g.dy()));
}

// What is summed over this op's axis before it, kNone if v is no such sum.
ValueId summand(const Program& p, ValueId v, const Op& op) {
  const OpId maker = p.value(v).producer;
  if (maker == kNone) return kNone;
  const Op& sum = p.ops()[static_cast<size_t>(maker)];
  const bool is_sum = sum.kind == "all_reduce" && attr_text(sum.attrs, "fn", "sum") == "sum" &&
                      attr_text(sum.attrs, "axis", "") == attr_text(op.attrs, "axis", "");
  return is_sum ? sum.in[0] : kNone;
}

// The rank's own part of the cotangent of all parts; where that is a sum over the ranks, it alone
// is summed.
void all_gather_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  Program& p = g.p;
  if (const ValueId x = summand(p, g.dy(), op); x != kNone)
    return g.add(op.in[0], p.add1("reduce_scatter", {x}, like(op, {"axis", "origin"})));
  const ValueId me = p.add1("coordinate", {}, like(op, {"axis", "ranks"}));
  const ValueId own = p.add1("slice_at", {g.dy(), me}, {{"dim", int64_t{0}}, {"size", int64_t{1}}});
  g.add(op.in[0], p.add1("reshape", {own}, {{"dims", p.type(op.in[0]).dims}}));
}

void reduce_scatter_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  Attrs attrs = like(op, {"axis", "origin"});
  attrs.set("ranks", g.p.type(op.in[0]).dims[0]);
  g.add(op.in[0], varied(g, op, g.p.add1("all_gather", {g.dy()}, attrs)));
}

void all_to_all_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0]))
    g.add(op.in[0], g.p.add1("all_to_all", {g.dy()}, like(op, {"axis", "origin"})));
}

void permute_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  const Dims to = attr_ints(op.attrs, "to");
  Dims back(to.size());
  for (size_t c = 0; c < to.size(); ++c) back[static_cast<size_t>(to[c])] = static_cast<int64_t>(c);
  Attrs attrs = like(op, {"axis", "origin"});
  attrs.set("to", back);
  g.add(op.in[0], g.p.add1("permute", {g.dy()}, attrs));
}

// The root's is the whole cotangent, the others' are zero.
void broadcast_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  Attrs attrs = like(op, {"axis"});
  attrs.set("ranks", int64_t{g.p.axis_size(attr_text(op.attrs, "axis", ""))});
  const ValueId me = g.p.add1("coordinate", {}, attrs);
  const double root = static_cast<double>(attr_int(op.attrs, "root", 0));
  const ValueId is_root = g.p.pointwise(ORR_FN_EQ, {me, Operand::number(root)});
  g.add(op.in[0], g.p.pointwise(ORR_FN_SELECT, {is_root, g.dy(), Operand::number(0)}));
}

// The ranks' own values, gathered into one, can lie in parts.
bool gather_own(OnParts& s, const Op& op) {
  if (attr_text(op.attrs, "axis", "") != s.me.axis || op.attrs.has("counts") ||
      s.n_parts != s.me.ranks)
    return false;
  const ValueId x = s.read(op.in[0], Placement{});
  Dims dims = s.p.type(x).dims;
  dims.insert(dims.begin(), 1);
  s.become(op.out[0], build::reshape(s.p, x, dims), Placement::along(0, {s.me.ranks}));
  return true;
}

constexpr PartsRule kGatherParts{.options = linear_options, .run = gather_own};

}  // namespace

bool is_exchange(const std::string& kind) { return op_def(kind).sharding == trailing; }
bool names_axis(const std::string& kind) {
  return is_exchange(kind) || kind == "vary" || kind == "coordinate";
}

extern const OpDef all_reduce_op{"all_reduce", infer_all_reduce, trailing,     all_reduce_gradient,
                                 no_flops,     nullptr,          &linear_parts};
extern const OpDef all_gather_op =
    OpDef{"all_gather", infer_gather, trailing,     all_gather_gradient,
          no_flops,     nullptr,      &kGatherParts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef reduce_scatter_op{
    "reduce_scatter", infer_scatter, trailing,     reduce_scatter_gradient,
    no_flops,         nullptr,       &linear_parts};
extern const OpDef all_to_all_op =
    OpDef{"all_to_all", infer_exchange, trailing,     all_to_all_gradient,
          no_flops,     nullptr,        &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef sample_exchange_op =
    OpDef{"sample_exchange", infer_samples, trailing, nullptr, no_flops, nullptr, &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef permute_op =
    OpDef{"permute", infer_same, trailing, permute_gradient, no_flops, nullptr, &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef broadcast_op =
    OpDef{"broadcast", infer_same, trailing, broadcast_gradient, no_flops, nullptr, &linear_parts}
        .with_eight_bits(takes_eight_bits);
extern const OpDef send_op =
    OpDef{"send", infer_send, trailing, nullptr, no_flops, nullptr, &linear_parts}.with_eight_bits(
        takes_eight_bits);
extern const OpDef recv_op =
    OpDef{"recv", infer_recv, trailing, nullptr, no_flops, nullptr, &linear_parts}.with_eight_bits(
        takes_eight_bits);
extern const OpDef vary_op =
    OpDef{"vary", infer_same, same_dims_sharding, vary_gradient, no_cost, nullptr}.with_eight_bits(
        takes_eight_bits);
extern const OpDef unshard_op = OpDef{"unshard", infer_same, same_dims_sharding, unshard_gradient,
                                      no_cost,   nullptr,    &linear_parts}
                                    .with_eight_bits(takes_eight_bits);
extern const OpDef coordinate_op{"coordinate", infer_coordinate, same_dims_sharding,
                                 nullptr,      no_cost,          nullptr};

}  // namespace orrery
