// SPDX-License-Identifier: Apache-2.0
//
// pointwise: goes over the output in row-major order, tile by tile, and lets the interpreter
// compute each tile. Neighbouring dims are joined if every tensor's strides allow it, so that tiles
// are long.
#include <algorithm>
#include <orrery/sdk/expression_checks.hpp>
#include <vector>

#include "expression.h"
#include "op.h"

namespace reference {
namespace {

enum { kTasks = 16 };

// The dims of the walk and every tensor's strides along them, inputs first.
struct Walk {
  explicit Walk(const orr_op& op) : strides(size_t(op.n_in + op.n_out)) {
    const orr_tensor& shape = op.out[0];
    for (int d = 0; d < shape.rank; ++d)
      if (shape.dims[d] != 1) append(op, d);
    if (dims.empty()) {
      dims.push_back(1);
      for (auto& s : strides) s.push_back(0);
    }
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
    tiles_per_row = (dims.back() + kTileElements - 1) / kTileElements;
    tiles = rows * tiles_per_row;
  }

  int64_t tasks() const { return std::min<int64_t>(kTasks, tiles); }

  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides;  // [tensor][dim]
  int64_t tiles_per_row, tiles;

 private:
  // A dim of 1 where the output has more is read again and again, whatever its stride says.
  static int64_t stride(const orr_op& op, int tensor, int d) {
    const orr_tensor& t = tensor < op.n_in ? op.in[tensor] : op.out[tensor - op.n_in];
    return t.dims[d] == 1 ? 0 : t.strides[d];
  }

  void append(const orr_op& op, int d) {
    int64_t length = op.out[0].dims[d];
    bool joins = !dims.empty();
    for (size_t t = 0; t < strides.size() && joins; ++t)
      joins = strides[t].back() == stride(op, int(t), d) * length;
    if (joins)
      dims.back() *= length;
    else
      dims.push_back(length);
    for (size_t t = 0; t < strides.size(); ++t) {
      if (joins) strides[t].pop_back();
      strides[t].push_back(stride(op, int(t), d));
    }
  }
};

void check(const orr_op& op) {
  require(op.n_out >= 1, "a pointwise op needs an output");
  const orr_tensor& shape = op.out[0];
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    const orr_tensor& t = i < op.n_in ? op.in[i] : op.out[i - op.n_in];
    std::string name =
        i < op.n_in ? "input " + std::to_string(i) : "output " + std::to_string(i - op.n_in);
    require(t.rank == shape.rank, name + " has another rank than output 0");
    for (int d = 0; d < t.rank; ++d)
      require(t.dims[d] == shape.dims[d] || (i < op.n_in && t.dims[d] == 1),
              name + " has other dims than output 0");
  }
  check_expression(op);
}

uint64_t workspace(const orr_op& op) {
  return uint64_t(Walk(op).tasks()) * uint64_t(op.expr->n_instrs) * sizeof(Register);
}

class Launch {
 public:
  Launch(const Call& call, const Walk& walk) : call_(call), walk_(walk) {
    const orr_op& op = call.op;
    for (int i = 0; i < op.n_in; ++i)
      base_.push_back({orr_buffer_host(&call.in[i]), 0, op.in[i].dtype});
    for (int i = 0; i < op.n_out; ++i)
      base_.push_back({orr_buffer_host(&call.out[i]), 0, op.out[i].dtype});
  }

  void task(int64_t i) const {
    std::vector<TileView> views(base_);
    auto* registers = reinterpret_cast<Register*>(call_.workspace) + i * call_.op.expr->n_instrs;
    int64_t tasks = walk_.tasks();
    for (int64_t t = walk_.tiles * i / tasks; t < walk_.tiles * (i + 1) / tasks; ++t) {
      int64_t column = t % walk_.tiles_per_row * kTileElements, row = t / walk_.tiles_per_row;
      for (size_t v = 0; v < views.size(); ++v) views[v] = view(v, row, column);
      Tile tile = {views.data(), views.data() + call_.op.n_in, row * walk_.dims.back() + column,
                   int(std::min<int64_t>(kTileElements, walk_.dims.back() - column))};
      evaluate(*call_.op.expr, tile, registers);
    }
  }

 private:
  TileView view(size_t tensor, int64_t row, int64_t column) const {
    const std::vector<int64_t>& strides = walk_.strides[tensor];
    int64_t offset = column * strides.back();
    for (size_t d = strides.size() - 1; d-- > 0; row /= walk_.dims[d])
      offset += row % walk_.dims[d] * strides[d];
    TileView v = base_[tensor];
    v.data = static_cast<char*>(v.data) + offset * orr_dtype_bytes(v.dtype);
    v.stride = strides.back();
    return v;
  }

  const Call& call_;
  const Walk& walk_;
  std::vector<TileView> base_;
};

void run(const Call& call) {
  Walk walk(call.op);
  Launch launch(call, walk);
  orr::parallel_for(walk.tasks(), [&](int64_t i) { launch.task(i); });
}

bool equal_layout(const orr_tensor& a, const orr_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

// The first input that output 0 may overwrite. A tile is read before it is written.
int32_t inplace(const orr_op& op) {
  for (int i = 0; i < op.n_in; ++i)
    if (equal_layout(op.in[i], op.out[0])) return i + 1;
  return 0;
}

}  // namespace

const Family pointwise_family = {
    "pointwise", "reference.pointwise.1", check, run, workspace, ~0u, ~0u, inplace};

}  // namespace reference
