// SPDX-License-Identifier: Apache-2.0
#include "epilogue.h"

#include <algorithm>

#include "expression.h"
#include "op.h"

namespace orr_cuda {
namespace {

// The product times the slope of GELU at an input.
void read_slope(const orr_expr& e, const orr_instr& result, Epilogue& to) {
  const auto is_product = [&](int r) {
    return e.instrs[r].fn == ORR_FN_INPUT && e.instrs[r].a == 0;
  };
  const bool left = is_product(result.a);
  const orr_instr& factor = e.instrs[left ? result.b : result.a];
  require(is_product(left ? result.a : result.b) && factor.fn == ORR_FN_GELU_GRAD &&
              e.instrs[factor.a].fn == ORR_FN_INPUT,
          "not an epilogue of cuBLASLt");
  to.before = e.instrs[factor.a].a + 1, to.kind = CUBLASLT_EPILOGUE_DGELU;
}

// The product and other inputs.
void read_sum(const orr_op& op, int sum, Epilogue& to) {
  const std::vector<int> terms = terms_of(*op.expr, sum);
  require(std::ranges::count(terms, 0) == 1, "not the product once");
  for (const int i : terms) {
    if (i == 0) continue;
    const orr_tensor& x = op.in[i + 1];
    const auto repeats = [&](int d) { return x.dims[d] == 1 || x.strides[d] == 0; };
    const bool row = repeats(0) && repeats(1) && x.strides[2] == 1;
    int& place = row && op.out[0].dims[1] > 1 ? to.bias : to.added;
    require(place < 0, "two of one kind are added");
    place = i + 1;
  }
}

// Reads the expression as cuBLASLt has it: the product plus a row, a tensor, both or neither; GELU
// of it plus a row; or the product times the slope of GELU at an input.
void read(const orr_op& op, Epilogue& to) {
  const orr_expr& e = *op.expr;
  require(e.n_outputs <= 2, "no such results at once");
  const auto result = [&](int j) -> const orr_instr& { return e.instrs[e.outputs[j]]; };
  for (int j = 0; j < e.n_outputs; ++j)
    if (result(j).fn == ORR_FN_GELU) to.kind = CUBLASLT_EPILOGUE_GELU, to.result = j;
  const bool gelu = to.kind == CUBLASLT_EPILOGUE_GELU;
  const int sum = gelu ? result(to.result).a : e.outputs[to.result];
  if (gelu && e.n_outputs == 2) to.kept = 1 - to.result;
  require(e.n_outputs == 1 || (gelu && e.outputs[to.kept] == sum), "no such results at once");
  if (e.instrs[sum].fn == ORR_FN_MUL && !gelu)
    read_slope(e, e.instrs[sum], to);
  else
    read_sum(op, sum, to);
  require(gelu || to.before >= 0 || to.bias >= 0 || to.added >= 0, "nothing follows");
}

// Where a tensor that is read or written whole lies.
Matrix whole(const orr_tensor& x, const orr_tensor& y) {
  for (int d = 0; d < 3; ++d)
    require(x.dims[d] == y.dims[d] && (x.dims[d] == 1 || x.strides[d] != 0),
            "a tensor is repeated in another way than a bias");
  const std::optional<Matrix> found = view_of(x);
  require(found.has_value(), "a tensor with rows that cuBLASLt cannot read");
  return *found;
}

}  // namespace

Epilogue::Epilogue(const orr_op& op) {
  require(op.n_in >= 2 && op.expr && op.n_out >= 1, "not a matmul and an expression");
  const int32_t dtype = op.in[0].dtype;
  require(dtype == ORR_F32 || dtype == ORR_BF16 || dtype == ORR_F16, "only f32, bf16 and f16");
  for (int i = 0; i < op.expr->n_instrs; ++i)
    require(op.expr->instrs[i].dtype == dtype, "not all of one dtype");
  read(op, *this);
  if (added >= 0) {
    require(kind == CUBLASLT_EPILOGUE_DEFAULT, "GELU of a sum with a tensor");
    added_at = whole(op.in[added], op.out[result]);
  }
  if (bias >= 0) kind = (kind == CUBLASLT_EPILOGUE_DEFAULT ? 0 : kind) | CUBLASLT_EPILOGUE_BIAS;
  if (kept >= 0) {
    kind |= CUBLASLT_EPILOGUE_GELU_AUX;
    aux_at = whole(op.out[kept], op.out[result]);
  }
  if (before >= 0) aux_at = whole(op.in[before], op.out[result]);
  require(!aux_at || (aux_at->leading % 8 == 0 && aux_at->batch_stride % 8 == 0),
          "GELU keeps rows of a multiple of 8 only");
  const bool adds = kind == CUBLASLT_EPILOGUE_BIAS || kind == CUBLASLT_EPILOGUE_DEFAULT;
  const bool exact = dtype == ORR_F32 && adds && (bias < 0 || added < 0);
  require(exact || orr::attr_text(op, "numerics", "") == "fast",
          "would round otherwise than the two ops: for fast products");
}

Epilogue::Apart Epilogue::take_apart(const orr_op& op) const {
  Apart to{op, op, {op.in + 1, op.in + op.n_in}};
  to.matmul.kind = "matmul", to.matmul.n_in = 2, to.matmul.expr = nullptr;
  to.matmul.n_out = 1, to.matmul.out = op.out + result;
  to.in[0] = op.out[result];
  to.rest.kind = "pointwise", to.rest.n_in = op.n_in - 1, to.rest.in = to.in.data();
  to.rest.n_attrs = 0;
  return to;
}

std::string Epilogue::name() const {
  std::string text;
  if (bias >= 0) text += "+bias";
  if (added >= 0) text += "+added";
  if (kind & CUBLASLT_EPILOGUE_GELU) text += kept >= 0 ? "+gelu,kept" : "+gelu";
  if (before >= 0) text += "+slope";
  return text;
}

}  // namespace orr_cuda
