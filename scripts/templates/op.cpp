// @name@: rows scaled to length 1, y = x / sqrt(sum of x * x + eps), as for cosine similarities.
// Written in ops that the host knows (orrery/ops.h, docs/ops.md), it runs on every device and under
// every strategy, and its gradient is theirs. See orrery/op.h for the calls.
#include <orrery/sdk/op.hpp>

namespace {

const orr_attr options[] = {orr::real_attr("eps", 1e-6)};

int32_t count(void*) { return 1; }

orr_status* describe(void*, int32_t, orr_op_info* out) {
  out->name = "@name@", out->summary = "rows scaled to length 1";
  out->n_in = 1, out->n_examples = 1;
  out->options = options, out->n_options = 1;
  return nullptr;
}

orr_status* example(void*, int32_t, int32_t, orr_tensor* in) {
  in[0].dtype = ORR_F32, in[0].rank = 2;
  in[0].dims[0] = 6, in[0].dims[1] = 5;
  return nullptr;
}

orr_status* shape(void*, int32_t, const orr_op_call* call, orr_tensor* out) {
  return orr::guard([&] {
    if (call->in[0].rank < 2)
      throw orr::Error(ORR_INVALID, "@name@ needs rows, at least two dims: x:reshape(-1, width)");
    *out = call->in[0];
  });
}

orr_status* forward(void*, int32_t, const orr_op_call* call, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    const int32_t squares = w.sum_of_rows(w.mul(in[0], in[0]));
    *out = w.div(in[0], w.pointwise(ORR_FN_SQRT, {w.add(squares, call->options[0].f)}));
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward;
  return t;
}
constexpr orr_op_api table = op_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_OP, "@name@", "0.1.0", "Rows of length 1", orr::op_entry<table>, 1,
           {{"op", 1, 1}})
