// SPDX-License-Identifier: Apache-2.0
//
// norm_grad: the ops that it stands for, one after the other.
#include <vector>

#include "leaves.h"
#include "op.h"
#include "rows.h"

namespace reference {
namespace {

template <class X>
std::vector<X> without_weight(const X* in, int n) {
  std::vector<X> some(in, in + n);
  some.erase(some.begin() + 2);
  return some;
}

orr_attr sum_attr() {
  orr_attr fn{};
  fn.name = "fn", fn.type = ORR_ATTR_TEXT, fn.text = "sum";
  return fn;
}

// The ops. Stays where it is.
struct Parts {
  explicit Parts(const orr_op& op)
      : rms(orr::attr_int(op, "rms", 0) == 1),
        n_in(rms ? 4 : 5),
        n_out(rms ? 2 : 3),
        attrs(op.attrs, op.attrs + op.n_attrs),
        input(op),
        params(op),
        sum(op) {
    require(op.n_in == n_in || op.n_in == n_in + 1, "another number of inputs is needed");
    require(op.n_out == n_out || op.n_out == n_out + 1, "another number of outputs is needed");
    in = without_weight(op.in, n_in);
    input.n_in = n_in, input.n_out = 1;
    params.n_in = n_in - 1, params.in = in.data();
    params.n_out = n_out - 1, params.out = op.out + 1;
    attrs.push_back(sum_attr());
    y = op.out[0];
    y.rank = 3, y.dims[2] = y.dims[1], y.dims[1] = y.dims[0], y.dims[0] = 1;
    y.strides[1] = y.strides[0], y.strides[2] = 1;
    sum.attrs = attrs.data(), sum.n_attrs = op.n_attrs + 1;
    sum.n_in = sum.n_out = 1, sum.in = &y, sum.out = op.out + n_out;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const Family& input_family() const { return rms ? rmsnorm_grad_family : layernorm_grad_family; }

  bool rms;
  int n_in, n_out;  // without r and the sum
  std::vector<orr_tensor> in;
  std::vector<orr_attr> attrs;
  orr_tensor y;
  orr_op input, params, sum;
};

void check(const orr_op& op) {
  const Parts parts(op);
  parts.input_family().check(parts.input);
  norm_param_grad_family.check(parts.params);
  if (op.n_in > parts.n_in) require_same(op, op.in[parts.n_in], "r");
  if (op.n_out == parts.n_out) return;
  require_dtype(op.out[parts.n_out], op.in[0].dtype, "s");
  require_nodes(op, op.out[parts.n_out], {op.in[0].dims[1]}, "s");
}

uint64_t workspace(const orr_op& op) {
  const Parts parts(op);
  return norm_param_grad_family.workspace(parts.params);
}

void run(const Call& call) {
  const Parts parts(call.op);
  parts.input_family().run({parts.input, call.in, call.out, nullptr});
  const std::vector<orr_buffer> in = without_weight(call.in, parts.n_in);
  norm_param_grad_family.run({parts.params, in.data(), call.out + 1, call.workspace});
  if (call.op.n_in > parts.n_in)
    with_real(call.op.in[0].dtype, [&]<class T>(Type<T>) {
      T* dx = call.output<T>(0);
      const T* r = call.input<T>(parts.n_in);
      const int64_t n = orr::elements(call.op.out[0]);
      for (int64_t i = 0; i < n; ++i) put(dx[i], get(dx[i]) + get(r[i]));
    });
  if (call.op.n_out > parts.n_out)
    reduce_family.run({parts.sum, call.out, call.out + parts.n_out, call.workspace});
}

}  // namespace

const Family norm_grad_family = {"norm_grad", "reference.norm_grad.1", check, run, workspace, 0, 0,
                                 nullptr};

}  // namespace reference
