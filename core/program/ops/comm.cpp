// SPDX-License-Identifier: Apache-2.0
//
// Communication as ops: what strategies' passes put into a rank's program (design section 5). Every
// one names a mesh axis (text "axis"); the ranks that differ only in their coordinate on it take
// part. Text "cause" is the strategy that asked for it. They come after differentiation, so none
// has a gradient; no kernel computes them, the communicator does.
//
//   all_reduce      x -> y like x: text "fn" = "sum" (default), "min", "max", in rank order; int
//                   "tree" = 1: summed in the binary tree over the ranks (orrery/ops.h, LEAVES),
//                   here and in reduce_scatter
//   all_gather      x -> y[ranks, x's dims...]; with ints "counts" x[counts[me]] -> y[sum of
//                   counts] (no x where that is 0); int "always" = 1: peers wait for it, needed
//                   here or not; text "home": y is the new value of the states kept together with
//                   the one so named;
//                   text "shared": y lies where those states do, in memory of all ranks, and its
//                   readers only wait for its writers
//   reduce_scatter  x[ranks, dims...] -> y[dims...]; with "counts" x[sum of counts] ->
//                   y[counts[me]]
//   broadcast       x -> y like x: the tensor of the rank with coordinate "root"
//   send            x -> nothing; int "peer" (coordinate), int "tag"
//   recv            -> y of ints "dims" and int "dtype"; "peer", "tag"
#include <numeric>
#include <stdexcept>

#include "program/op.h"

namespace orrery {
namespace {

std::vector<Type> infer_same(const OpArgs& args) { return {args.in.at(0)}; }

int64_t sum(const Dims& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

std::vector<Type> infer_gather(const OpArgs& args) {
  Type x = args.in.at(0);
  if (args.attrs.count("counts")) return {{x.dtype, {sum(attr_ints(args.attrs, "counts"))}}};
  int64_t ranks = attr_int(args.attrs, "ranks", 0);
  if (ranks < 1) throw std::invalid_argument("the number of ranks is missing");
  x.dims.insert(x.dims.begin(), ranks);
  return {x};
}

std::vector<Type> infer_scatter(const OpArgs& args) {
  Type x = args.in.at(0);
  if (args.attrs.count("counts")) {
    Dims counts = attr_ints(args.attrs, "counts");
    if (x.dims != Dims{sum(counts)})
      throw std::invalid_argument(to_string(x) + " is not the concatenation of the parts");
    return {{x.dtype, {counts.at(static_cast<size_t>(attr_int(args.attrs, "me", 0)))}}};
  }
  if (x.dims.empty()) throw std::invalid_argument("a scalar cannot be scattered");
  x.dims.erase(x.dims.begin());
  return {x};
}

std::vector<Type> infer_send(const OpArgs&) { return {}; }

std::vector<Type> infer_recv(const OpArgs& args) {
  return {{static_cast<int32_t>(attr_int(args.attrs, "dtype", ORR_F32)),
           attr_ints(args.attrs, "dims")}};
}

// Dims keep their meaning; the axis' own dim in front, where there is one, cannot be split further.
Sharding trailing(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s;
  bool flat = args.attrs.count("counts") > 0;
  size_t rank = 0;
  for (const Type& t : args.in) rank = std::max(rank, t.dims.size());
  for (const Type& t : out) rank = std::max(rank, t.dims.size());
  auto factors = [&](const Type& t) {
    std::vector<int> f(t.dims.size(), kNone);
    bool carries_axis =
        (args.kind == "all_gather" || args.kind == "reduce_scatter") && t.dims.size() == rank;
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

}  // namespace

bool is_exchange(const std::string& kind) { return op_def(kind).sharding == trailing; }

extern const OpDef all_reduce_op{"all_reduce", infer_same, trailing, nullptr, no_flops, nullptr};
extern const OpDef all_gather_op{"all_gather", infer_gather, trailing, nullptr, no_flops, nullptr};
extern const OpDef reduce_scatter_op{"reduce_scatter", infer_scatter, trailing,
                                     nullptr,          no_flops,      nullptr};
extern const OpDef broadcast_op{"broadcast", infer_same, trailing, nullptr, no_flops, nullptr};
extern const OpDef send_op{"send", infer_send, trailing, nullptr, no_flops, nullptr};
extern const OpDef recv_op{"recv", infer_recv, trailing, nullptr, no_flops, nullptr};

}  // namespace orrery
