// SPDX-License-Identifier: Apache-2.0
//
// Rows and slices at run-time indices; and iota.
#include "kernel.h"
#include "sources.h"

namespace ocl {
namespace {

std::string outside(const std::string& kind, int64_t rows) {
  return kind + ": index {value} in row {row} is outside the " + std::to_string(rows) +
         " rows of the table (0.." + std::to_string(rows - 1) + ")";
}

std::string types(int32_t dtype, int32_t index) {
  return typed(dtype) + " -DINDEX=" + c_type(index);
}

void same_dtype(const orr_op& op, int a, int b) {
  require(tensor(op, a).dtype == tensor(op, b).dtype, "the dtypes do not fit");
}

void check_gather(const orr_op& op) {
  require_counts(op, 2, 1), require_index(op.in[1]), same_dtype(op, 0, 2);
  c_type(op.in[0].dtype);
  require(op.in[0].rank == 2 && op.in[1].rank == 1, "a table has two dims, an index one");
  require_dims(op.out[0], {op.in[1].dims[0], op.in[0].dims[1]});
}

std::vector<Pass> gather(const orr_op& op) {
  const orr_tensor& table = op.in[0];
  return {{index_cl,
           types(table.dtype, op.in[1].dtype),
           "gather",
           op.in[1].dims[0] * table.dims[1],
           {0, 1, 2},
           {table.dims[0], table.dims[1]},
           {},
           outside("gather", table.dims[0])}};
}

void check_scatter_add(const orr_op& op) {
  require_counts(op, op.n_in == 3 ? 3 : 2, 1), require_real(op, {1, op.n_in}),
      require_index(op.in[0]);
  const int64_t rows = orr::attr_int(op, "rows", -1);
  require(rows >= 0 && op.in[0].rank == 1 && op.in[1].rank == 2,
          "rows must be given, dy has two dims, an index one");
  const int64_t n = op.in[0].dims[0], columns = op.in[1].dims[1];
  require_dims(op.in[1], {n, columns}), require_nodes(op, op.out[0], {rows, columns}, n);
  if (op.n_in < 3) return;
  same_dtype(op, 1, 2), require_dims(op.in[2], {rows, columns});
  require(nodes_of(op).size() == 1, "with a base all leaves must be there");
}

std::vector<Pass> scatter_add(const orr_op& op) {
  const int64_t rows = orr::attr_int(op, "rows", 0), columns = op.in[1].dims[1],
                tokens = op.in[0].dims[0];
  const bool based = op.n_in == 3;
  const std::string options = types(op.in[1].dtype, op.in[0].dtype) + (based ? " -DBASED" : "");
  std::vector<Pass> all;
  for (const Node& node : nodes_of(op))
    all.push_back({index_cl,
                   options,
                   "scatter_add",
                   rows * columns,
                   based ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 2},
                   {rows, columns, leaf_length(op, tokens), tokens, node.first, node.count,
                    static_cast<int64_t>(all.size())},
                   {},
                   outside("scatter_add", rows)});
  return all;
}

// x[O,D,I] and its part [O,n,I], at a scalar.
void check_part(const orr_op& op, const orr_tensor& part, const orr_tensor& at) {
  const orr_tensor& x = op.in[0];
  c_type(x.dtype);
  require(x.rank == 3 && part.rank == 3 && part.dims[1] <= x.dims[1],
          "a slice has three dims and lies in x");
  require(part.dtype == x.dtype && at.dtype == ORR_I64 && orr::elements(at) == 1,
          "at is an i64 scalar, a slice is as x");
  require_dims(part, {x.dims[0], part.dims[1], x.dims[2]});
}
void check_slice_at(const orr_op& op) {
  require_counts(op, 2, 1), check_part(op, op.out[0], op.in[1]);
}
void check_update_slice(const orr_op& op) {
  require_counts(op, 3, 1), check_part(op, op.in[1], op.in[2]), same_dtype(op, 0, 3);
  require_dims(op.out[0], {op.in[0].dims[0], op.in[0].dims[1], op.in[0].dims[2]});
}

std::vector<Pass> slice(const orr_op& op, const orr_tensor& part, std::vector<int> tensors) {
  const orr_tensor& x = op.in[0];
  return {{index_cl,
           types(x.dtype, ORR_I64),
           op.kind,
           orr::elements(op.out[0]),
           std::move(tensors),
           {x.dims[1], part.dims[1], x.dims[2]},
           {},
           std::string(op.kind) + ": at {value} with length " + std::to_string(part.dims[1]) +
               " is outside the dim of " + std::to_string(x.dims[1])}};
}
std::vector<Pass> slice_at(const orr_op& op) { return slice(op, op.out[0], {0, 1, 2}); }
std::vector<Pass> update_slice(const orr_op& op) { return slice(op, op.in[1], {0, 1, 2, 3}); }

void check_iota(const orr_op& op) {
  require_counts(op, 0, 1);
  require(op.out[0].rank == 1 && op.out[0].dtype != ORR_BOOL, "y has one dim and is not bool");
  c_type(op.out[0].dtype);
}
std::vector<Pass> iota(const orr_op& op) {
  return {{index_cl,
           types(op.out[0].dtype, ORR_I64),
           "iota",
           op.out[0].dims[0],
           {0},
           {orr::attr_int(op, "start", 0)}}};
}

int32_t on_first(const orr_op&) { return 1; }
int32_t on_base(const orr_op& op) { return op.n_in == 3 ? 3 : 0; }

}  // namespace

const Family gather_family = {"gather", check_gather, gather};
const Family scatter_add_family = {"scatter_add", check_scatter_add, scatter_add, 0, 0, on_base};
const Family slice_at_family = {"slice_at", check_slice_at, slice_at};
const Family update_slice_family = {"update_slice", check_update_slice, update_slice, 0, 0,
                                    on_first};
const Family iota_family = {"iota", check_iota, iota};

}  // namespace ocl
