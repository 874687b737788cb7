// SPDX-License-Identifier: Apache-2.0
//
// The layouts of the tensors of a pointwise op, and which ops are supported.
#include <orrery/sdk/plugin.hpp>

#include <algorithm>

#include "executable.h"
#include "pointwise_code.h"

namespace orr_cpu::pointwise {

bool is_uniform(const orr_tensor& t) {
  for (int d = 0; d < t.rank; ++d)
    if (t.dims[d] != 1 && t.strides[d] != 0) return false;
  return true;
}

Walk walk_of(const orr_op& op, const orr_tensor& t, int tensor) {
  Walk w{};
  w.tensor = tensor;
  w.bytes = int32_t(orr_dtype_bytes(t.dtype));
  w.run = 1;
  w.inner = 1;
  bool open = false;  // the innermost run has begun
  const orr_tensor& shape = op.out[0];
  int64_t dims[ORR_MAX_RANK], strides[ORR_MAX_RANK];
  int n = 0;  // outer dims, innermost first
  for (int d = shape.rank - 1; d >= 0; --d) {
    int64_t size = shape.dims[d];
    if (size == 1) continue;
    int64_t stride = t.rank && t.dims[d] == size ? t.strides[d] : 0;
    if (!open) {
      w.run = size, w.inner = stride, open = true;
    } else if (n == 0 && stride == w.inner * w.run) {
      w.run *= size;
    } else if (n && stride == strides[n - 1] * dims[n - 1]) {
      dims[n - 1] *= size;
    } else {
      dims[n] = size, strides[n++] = stride;
    }
  }
  w.rank = n;
  for (int i = 0; i < n; ++i) w.dims[i] = dims[n - 1 - i], w.strides[i] = strides[n - 1 - i];
  w.flat = n == 0 && w.inner == 1;
  return w;
}

namespace {

// Newer headers have more.
bool known_function(int32_t fn) {
  return (fn >= ORR_FN_INPUT && fn <= ORR_FN_RAND) || (fn >= ORR_FN_ADD && fn <= ORR_FN_MOD) ||
         (fn >= ORR_FN_NEG && fn <= ORR_FN_GELU_GRAD) || (fn >= ORR_FN_EQ && fn <= ORR_FN_SELECT);
}

bool orders_booleans(const orr_expr& e, const orr_instr& i) {
  bool compares = i.fn >= ORR_FN_LT && i.fn <= ORR_FN_GE;
  if (compares) return e.instrs[i.a].dtype == ORR_BOOL;
  return i.dtype == ORR_BOOL && i.fn >= ORR_FN_ADD && i.fn <= ORR_FN_GELU_GRAD;
}

bool equal_layout(const orr_tensor& a, const orr_tensor& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d)
    if (a.dims[d] != b.dims[d] || a.strides[d] != b.strides[d]) return false;
  return true;
}

}  // namespace

void supports(const orr_op& op, orr_support& out) {
  if (op.n_in > kMaxTensors || op.n_out > kMaxTensors || op.n_out < 1)
    return refuse(out, "takes 1 to 64 outputs and at most 64 inputs");
  for (int i = 0; i < op.expr->n_instrs; ++i)
    if (!known_function(op.expr->instrs[i].fn))
      return refuse(out, "a function that is not known here");
  for (int i = 0; i < op.expr->n_instrs; ++i)
    if (orders_booleans(*op.expr, op.expr->instrs[i]))
      return refuse(out, "booleans have no order and no arithmetic here");
  if (compile(op).slots > kMaxSlots) return refuse(out, "more than 512 values are live at once");
  accept(out, "pointwise/lanes16/1");
  out.strided_in = out.strided_out = ~0u;
  for (int i = 0; i < op.n_in && !out.inplace; ++i)
    if (equal_layout(op.in[i], op.out[0])) out.inplace = i + 1;
}

namespace {

int slot_bytes(const orr_expr& e) {
  for (int i = 0; i < e.n_instrs; ++i) {
    if (!is_narrow(e.instrs[i].dtype)) return 8;
  }
  return 4;
}

// Elements per task: about 16384, in the same number of tasks for each thread.
int64_t grain_of(int64_t n) {
  const int64_t most = 16384, least = 2048, block = 128, team = threads();
  const int64_t tasks = team * std::max<int64_t>(1, (n + team * most - 1) / (team * most));
  return std::max(least, (n + tasks * block - 1) / (tasks * block) * block);
}

struct PointwiseKernel : Kernel {
  PointwiseKernel(const orr_op& op, const Isa& isa)
      : code(compile(op)), n_in(op.n_in), n_out(op.n_out), run(isa.run) {
    // A line more than a block: slots then spread over the sets of the cache.
    const int stride = slot_bytes(*op.expr) * isa.block + 64;
    program = {orr::elements(op.out[0]),
               code.slots,
               stride,
               int(code.in.size()),
               int(code.out.size()),
               int(code.uniform.size()),
               int(code.constant.size()),
               code.prologue.data(),
               code.body.data(),
               code.in.data(),
               code.uniform.data(),
               code.out.data(),
               code.constant.data(),
               code.period,
               nullptr,
               0};
    const MachineCode made = translate(code, stride, isa);
    body_code = executable(made.bytes);
    program.body_code = BodyCode(body_code.get());
    program.spill_bytes = made.spill_bytes;
  }

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    void *ins[kMaxTensors], *outs[kMaxTensors];
    for (int i = 0; i < n_in; ++i) ins[i] = orr_buffer_host(&in[i]);
    for (int i = 0; i < n_out; ++i) outs[i] = orr_buffer_host(&out[i]);
    const int64_t n = program.elements, grain = grain_of(n);
    auto task = [&](int64_t i) {
      run(program, ins, outs, i * grain, n < (i + 1) * grain ? n : (i + 1) * grain);
    };
    if (n <= grain)
      task(0);
    else
      orr::parallel_for((n + grain - 1) / grain, task);
  }

  Compiled code;
  Program program;
  std::shared_ptr<void> body_code;
  int n_in, n_out;
  Runner run;
};

}  // namespace

Kernel* make(const orr_op& op, const Isa& isa) { return new PointwiseKernel(op, isa); }

void compute(const Kernel& pointwise, void* const* in, void* const* out, int64_t first,
             int64_t last) {
  const auto& kernel = static_cast<const PointwiseKernel&>(pointwise);
  kernel.run(kernel.program, in, out, first, last);
}

}  // namespace orr_cpu::pointwise
