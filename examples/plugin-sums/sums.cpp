// SPDX-License-Identifier: Apache-2.0
//
// A layer's operation whose gradient has a kernel that sums over the batch: y = x * scale + shift,
// with one scale and one shift for each column. Scripts call orrery.ops.scale_shift(x, scale,
// shift).
//
// Forward is known ops. Its gradient by scale and shift is an op with two results, sums over all
// rows of dy * x and of dy, which a kernel makes in one pass; on other devices, and in other
// dtypes, known ops do.
#include <memory>
#include <orrery/sdk/op.hpp>

namespace {

enum { kScaleShift, kScaleShiftSums };

// -- the ops --------------------------------------------------------------------------------------

int32_t count(void*) { return 2; }

orr_status* describe(void*, int32_t which, orr_op_info* out) {
  out->gradient = 1, out->n_examples = 2;
  if (which == kScaleShift) {
    out->name = "scale_shift", out->summary = "x * scale + shift, by columns", out->n_in = 3;
  } else {
    out->name = "scale_shift_sums", out->summary = "sums over rows of dy * x and of dy";
    out->n_in = 2, out->n_out = 2, out->kernel = 2, out->sums = 1;
  }
  return nullptr;
}

orr_status* example(void*, int32_t which, int32_t number, orr_tensor* in) {
  orr_tensor x{};
  x.dtype = ORR_F32, x.rank = 2 + number, x.dims[0] = 6, x.dims[1] = 4, x.dims[2] = 3;
  in[0] = in[1] = x;
  if (which == kScaleShiftSums) return nullptr;
  in[1].rank = 1, in[1].dims[0] = x.dims[x.rank - 1];
  in[2] = in[1];
  return nullptr;
}

bool same_dims(const orr_tensor& a, const orr_tensor& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

orr_status* shape(void*, int32_t which, const orr_op_call* call, orr_tensor* out) {
  return orr::guard([&] {
    const orr_tensor& x = call->in[0];
    if (x.rank < 2 || x.dtype > ORR_F16)
      throw orr::Error(ORR_INVALID, "needs real numbers with at least two dims");
    orr_tensor column = x;
    column.rank = 1, column.dims[0] = x.dims[x.rank - 1];
    const bool sums = which == kScaleShiftSums;
    for (int32_t i = 1; i < call->n_in; ++i)
      if (call->in[i].dtype != x.dtype || !same_dims(call->in[i], sums ? x : column))
        throw orr::Error(ORR_INVALID, sums ? "needs dy and x of one shape and dtype"
                                           : "needs a scale and a shift for each column of x");
    out[0] = sums ? column : x;
    if (sums) out[1] = column;
  });
}

// The last dim, the columns, is all that the sums have.
orr_status* factors(void*, int32_t, const orr_op_call* call, int32_t input, int32_t* out) {
  const int32_t columns = call->in[0].rank - 1;
  if (input < 0) {
    out[0] = columns;
    return nullptr;
  }
  for (int32_t d = 0; d <= columns; ++d) out[d] = d;
  return nullptr;
}

orr_status* cost(void*, int32_t, const orr_op_call* call, const orr_tensor*, orr_op_cost* out) {
  const auto elements = static_cast<double>(orr::elements(call->in[0]));
  out->flops = 3 * elements, out->bytes = 2 * elements * orr_dtype_bytes(call->in[0].dtype);
  return nullptr;
}

int32_t sum_of_columns(const orr::Writer& w, int32_t x) {
  const auto rows = static_cast<int64_t>(w.dims(x).size()) - 1;
  return w.op("reduce", {x},
              {orr::text_attr("fn", "sum"), orr::int_attr("begin", 0), orr::int_attr("end", rows)});
}

orr_status* forward(void*, int32_t which, const orr_op_call*, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    if (which == kScaleShift) {
      out[0] = w.add(w.mul(in[0], in[1]), in[2]);
      return;
    }
    out[0] = sum_of_columns(w, w.mul(in[0], in[1]));
    out[1] = sum_of_columns(w, in[0]);
  });
}

// Of scale_shift: dx = dy * scale; those of scale and shift are the other op's results.
orr_status* backward(void*, int32_t, const orr_op_call*, orr_program* program,
                     const orr_writer* writer, const int32_t* in, int32_t, int32_t dy,
                     int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    dx[0] = w.mul(dy, in[1]);
    const int32_t read[] = {dy, in[0]};
    orr_op_desc sums{};
    sums.size = sizeof sums, sums.kind = "scale_shift_sums", sums.n_in = 2, sums.in = read;
    int32_t n = 0;
    orr::check(writer->op(program, &sums, dx + 1, 2, &n));
  });
}

// Of scale_shift_sums, with the cotangents a of the first sum and b of the second: dy has the slope
// a * x + b, and x the slope a * dy.
orr_status* backward_of(void*, int32_t, const orr_op_call*, orr_program* program,
                        const orr_writer* writer, const int32_t* in, const int32_t*,
                        const int32_t* cotangents, int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    const int32_t a = cotangents[0], b = cotangents[1];
    const int32_t both = a < 0 ? w.mul(in[1], 0.0) : w.mul(in[1], a);
    dx[0] = b < 0 ? both : w.add(both, b);
    dx[1] = a < 0 ? -1 : w.mul(in[0], a);
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward, t.backward = backward, t.backward_of = backward_of, t.factors = factors;
  t.cost = cost;
  return t;
}
constexpr orr_op_api op = op_table();

// -- the kernel -----------------------------------------------------------------------------------

struct Kernel {
  int32_t dtype;
  int64_t rows, columns;
};

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* asked, orr_support* out) {
  const bool mine = std::string_view(asked->kind) == "scale_shift_sums";
  const bool real = mine && (asked->in[0].dtype == ORR_F32 || asked->in[0].dtype == ORR_F64);
  out->score = real;
  orr::copy_text(out->reason, real   ? ""
                              : mine ? "only f32 and f64 are here"
                                     : "only scale_shift_sums is here");
  orr::copy_text(out->numerics, "row after row");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* asked, orr_kernel** out) {
  return orr::guard([&] {
    const orr_tensor& x = asked->in[0];
    const int64_t columns = x.dims[x.rank - 1];
    auto kernel = std::make_unique<Kernel>(
        Kernel{x.dtype, columns ? orr::elements(x) / columns : 0, columns});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

// Each column is summed from its first row to its last, whatever the number of threads.
template <class T>
void column_sums(const Kernel& k, const T* dy, const T* x, T* scale, T* shift) {
  constexpr int64_t kColumns = 64;  // of a task
  orr::parallel_for((k.columns + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t first = task * kColumns, last = std::min(first + kColumns, k.columns);
    std::fill(scale + first, scale + last, T{0});
    std::fill(shift + first, shift + last, T{0});
    for (int64_t r = 0; r < k.rows; ++r)
      for (int64_t c = first; c < last; ++c) {
        scale[c] += dy[r * k.columns + c] * x[r * k.columns + c];
        shift[c] += dy[r * k.columns + c];
      }
  });
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
    if (k.dtype == ORR_F32)
      column_sums(k, orr::data<const float>(in[0]), orr::data<const float>(in[1]),
                  orr::data<float>(out[0]), orr::data<float>(out[1]));
    else
      column_sums(k, orr::data<const double>(in[0]), orr::data<const double>(in[1]),
                  orr::data<double>(out[0]), orr::data<double>(out[1]));
  });
}

const orr_kernel_api kernels = {sizeof(orr_kernel_api),
                                nullptr,
                                "host",
                                probe,
                                supports,
                                measure,
                                prepare,
                                release,
                                launch,
                                nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    if (version != 1) return nullptr;
    if (std::string_view(id) == "op") return &op;
    return std::string_view(id) == "kernel" ? static_cast<const void*>(&kernels) : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, "sums", "1.0.0", "Scale and shift, with a fused gradient",
           entry, 2, {{"op", 1, 1}, {"kernel", 1, 1}})
