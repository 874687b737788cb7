// SPDX-License-Identifier: Apache-2.0
//
// gather: rows of a table [rows, width] at run-time indices, and its gradient scatter_add (int
// "rows"). A table may be cut by rows (Megatron's vocabulary parallelism), also unevenly: a rank
// gets zeros for rows that another rank has, and the ranks' results are summed.
#include <stdexcept>

#include "program/build.h"
#include "program/on_parts.h"

namespace orrery {
namespace {

std::vector<Type> infer_gather(const OpArgs& args) {
  want_index(args.in[1]);
  if (args.in[0].dims.size() != 2)
    throw std::invalid_argument("the table must be [rows, width], not " + to_string(args.in[0]));
  Dims dims = args.in[1].dims;
  dims.push_back(args.in[0].dims[1]);
  return {{args.in[0].dtype, dims}};
}

Sharding gather_sharding(const OpArgs& args, const std::vector<Type>&) {
  Sharding s;
  std::vector<int> index;
  for (size_t i = 0; i < args.in[1].dims.size(); ++i) index.push_back(static_cast<int>(i));
  std::vector<int> y = index;
  int width = static_cast<int>(index.size());
  y.push_back(width);
  s.in = {{kNone, width}, index}, s.out = {y};
  return s;
}

void gather_gradient(Gradient& g, const Op& op) {
  if (!g.wanted(op.in[0])) return;
  Program& p = g.p;
  const Dims table = p.type(op.in[0]).dims;
  ValueId index = build::reshape(p, build::batch_first(p, op.in[1]), {-1});
  ValueId dy = build::reshape(p, build::batch_first(p, g.dy()), {-1, table[1]});
  g.add(op.in[0], p.add1("scatter_add", {index, dy}, {{"rows", table[0]}}));
}

KernelForm gather_form(const Op&, const std::vector<Strided>& in, const std::vector<Strided>& out) {
  return contiguous_form(in, out, "rfr");
}

std::vector<Type> infer_scatter(const OpArgs& args) {
  want_index(args.in[0]);
  if (args.in[1].dims.size() != 2 || args.in[0].dims != Dims{args.in[1].dims[0]})
    throw std::invalid_argument("needs index [n] and rows [n, width], not " +
                                to_string(args.in[0]) + " and " + to_string(args.in[1]));
  return {{sum_dtype(args.attrs, args.in[1].dtype),
           {attr_int(args.attrs, "rows", 0), args.in[1].dims[1]}}};
}

Sharding scatter_sharding(const OpArgs&, const std::vector<Type>&) {
  return {{{0}, {0, 1}}, {{kNone, 1}}};
}

void scatter_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[1])) g.add(op.in[1], build::gather(g.p, g.dy(), op.in[0]));
}

KernelForm scatter_form(const Op&, const std::vector<Strided>& in,
                        const std::vector<Strided>& out) {
  return contiguous_form(in, out, in.size() == 3 ? "frrr" : "frr");
}

// -- on rows of a cut table -----------------------------------------------------------------------

bool gather_rows(OnParts& s, const Op& op) {
  if (s.over_batch || !s.at(op.in[0]).is_plain(0)) return false;
  const int64_t extent = s.from.type(op.in[0]).dims[0], first = s.me.begin(extent);
  std::vector<ValueId> found;
  for (int i = 0; i < s.n_chunks; ++i) {
    const PartIndex at =
        index_in_part(s.p, s.read(op.in[1], Placement{}), extent, s.chunk(i), first);
    const ValueId rows =
        build::gather(s.p, s.read(op.in[0], s.at(op.in[0])), masked(s.p, at.inside, at.index));
    found.push_back(masked(s.p, as_column(s.p, at.inside), rows));
  }
  s.become_sum(op.out[0], std::move(found));
  return true;
}

// Of the gradient of such a gather each rank keeps the rows of its part.
bool scatter_rows(OnParts& s, const Op& op) {
  if (s.over_batch || op.twin == kNone || s.at(op.in[0]).kind == Placement::owned) return false;
  const Op& twin = s.from.ops()[static_cast<size_t>(op.twin)];
  if (twin.kind != "gather" || !s.at(twin.in[0]).is_plain(0)) return false;
  const Type& whole = s.from.type(op.out[0]);
  const Placement table = Placement::along(0, {whole.dims[0]});
  const PartIndex at = index_in_part(s.p, s.read(op.in[0], Placement{}), whole.dims[0], s.me,
                                     s.me.begin(whole.dims[0]));
  const ValueId rows = s.read(op.in[1], Placement{});
  Op copy = op;
  copy.in = {masked(s.p, at.inside, at.index), masked(s.p, as_column(s.p, at.inside), rows)};
  s.p.mutable_value(op.out[0]).type = held(whole, table, s.me);
  copy.attrs.set("rows", s.p.type(op.out[0]).dims[0]);
  s.p.append(std::move(copy));
  s.become(op.out[0], op.out[0], table);
  return true;
}

constexpr PartsRule kGatherParts{.run = gather_rows}, kScatterParts{.run = scatter_rows};

}  // namespace

extern const OpDef gather_op = OpDef{"gather",   infer_gather, gather_sharding, gather_gradient,
                                     touch_cost, gather_form,  &kGatherParts}
                                   .with_eight_bits(takes_eight_bits);
extern const OpDef scatter_add_op{"scatter_add", infer_scatter, scatter_sharding, scatter_gradient,
                                  touch_cost,    scatter_form,  &kScatterParts};

}  // namespace orrery
