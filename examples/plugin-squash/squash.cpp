// SPDX-License-Identifier: Apache-2.0
//
// An op that the core has never heard of, with its gradient: the squashing of capsules (Sabour et
// al., "Dynamic Routing Between Capsules", NIPS 2017), y = x * h, h = sqrt(s) / (1 + s), with s the
// sum of squares of a row, plus eps. Scripts call orrery.ops.squash(x, {eps = 1e-6}).
#include <orrery/sdk/op.hpp>

namespace {

const orr_attr options[] = {orr::real_attr("eps", 1e-6)};

int32_t count(void*) { return 1; }

orr_status* describe(void*, int32_t, orr_op_info* out) {
  out->name = "squash", out->summary = "rows of a length between 0 and 1 (capsules)";
  out->n_in = 1, out->gradient = 1, out->n_examples = 2;
  out->options = options, out->n_options = 1;
  return nullptr;
}

orr_status* example(void*, int32_t, int32_t number, orr_tensor* in) {
  in[0].dtype = ORR_F32, in[0].rank = 2 + number;
  in[0].dims[0] = 6, in[0].dims[1] = number ? 3 : 5, in[0].dims[2] = 4;
  return nullptr;
}

orr_status* shape(void*, int32_t, const orr_op_call* call, orr_tensor* out) {
  return orr::guard([&] {
    if (call->in[0].rank < 2)
      throw orr::Error(ORR_INVALID, "squash needs rows, at least two dims: x:reshape(-1, width)");
    *out = call->in[0];
  });
}

// s and its root.
struct Length {
  Length(const orr::Writer& w, const orr_op_call* call, int32_t x)
      : s(w.add(w.sum_of_rows(w.mul(x, x)), call->options[0].f)),
        root(w.pointwise(ORR_FN_SQRT, {s})),
        more(w.add(s, 1.0)) {}
  int32_t s, root, more;
};

orr_status* forward(void*, int32_t, const orr_op_call* call, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    const Length l(w, call, in[0]);
    *out = w.mul(in[0], w.div(l.root, l.more));
  });
}

// dx = h * dy + x * 2h' * sum(dy * x), 2h' = (1 - s) / (sqrt(s) * (1 + s)^2).
orr_status* backward(void*, int32_t, const orr_op_call* call, orr_program* program,
                     const orr_writer* writer, const int32_t* in, int32_t, int32_t dy,
                     int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    const int32_t x = in[0];
    const Length l(w, call, x);
    const int32_t slope = w.div(w.sub(1.0, l.s), w.mul(l.root, w.mul(l.more, l.more)));
    const int32_t along = w.mul(slope, w.sum_of_rows(w.mul(dy, x)));
    dx[0] = w.add(w.mul(dy, w.div(l.root, l.more)), w.mul(x, along));
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward, t.backward = backward;
  return t;
}
constexpr orr_op_api table = op_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_OP, "squash", "1.0.0", "Squashing of capsules", orr::op_entry<table>, 1,
           {{"op", 1, 1}})
