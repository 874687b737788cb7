// SPDX-License-Identifier: Apache-2.0
//
// An op with two results, a kernel, and known ops for where the kernel is not: mean and variance of
// rows. Scripts call local mean, variance = orrery.ops.moments(x).
//
// The kernel reads a row once (Welford, Technometrics 4, 1962), on the host and for rows of up to
// 4,096 elements; longer rows, other dtypes and other devices get the known ops.
#include <memory>
#include <orrery/sdk/op.hpp>

namespace {

// -- the op ---------------------------------------------------------------------------------------

int32_t count(void*) { return 1; }

orr_status* describe(void*, int32_t, orr_op_info* out) {
  out->name = "moments", out->summary = "mean and variance of rows";
  out->n_in = 1, out->n_out = 2, out->gradient = 1, out->kernel = 2, out->n_examples = 2;
  return nullptr;
}

orr_status* example(void*, int32_t, int32_t number, orr_tensor* in) {
  in[0].dtype = ORR_F32, in[0].rank = 2 + number;
  in[0].dims[0] = 6, in[0].dims[1] = number ? 3 : 5, in[0].dims[2] = 4;
  return nullptr;
}

orr_status* shape(void*, int32_t, const orr_op_call* call, orr_tensor* out) {
  return orr::guard([&] {
    const orr_tensor& x = call->in[0];
    if (x.rank < 1 || x.dtype > ORR_F16)
      throw orr::Error(ORR_INVALID, "moments needs real numbers with at least one dim");
    for (int32_t k : {0, 1}) out[k] = x, out[k].rank = x.rank - 1;
  });
}

// Every dim but the last, which the results do not have, may be cut.
orr_status* factors(void*, int32_t, const orr_op_call* call, int32_t input, int32_t* out) {
  const int32_t rows = call->in[0].rank - 1;
  for (int32_t d = 0; d < rows; ++d) out[d] = d;
  if (input >= 0) out[rows] = -1;
  return nullptr;
}

double columns_of(const orr_op_call* call) {
  return static_cast<double>(call->in[0].dims[call->in[0].rank - 1]);
}

// Subtraction, sum of squares, and so on: four flops an element, each read once.
orr_status* cost(void*, int32_t, const orr_op_call* call, const orr_tensor*, orr_op_cost* out) {
  const auto elements = static_cast<double>(orr::elements(call->in[0]));
  out->flops = 4 * elements;
  out->bytes = elements * (1 + 2 / columns_of(call)) * orr_dtype_bytes(call->in[0].dtype);
  return nullptr;
}

// x - mean, with the mean of each row [..., 1].
int32_t centered(const orr::Writer& w, const orr_op_call* call, int32_t x, int32_t& mean) {
  mean = w.div(w.sum_of_rows(x), columns_of(call));
  return w.sub(x, mean);
}

// v[...] or v[..., 1] as the other of both.
int32_t as_rows(const orr::Writer& w, int32_t v) {
  std::vector<int64_t> dims = w.dims(v);
  dims.push_back(1);
  return w.reshape(v, dims);
}
int32_t as_results(const orr::Writer& w, int32_t v) {
  std::vector<int64_t> dims = w.dims(v);
  dims.pop_back();
  return w.reshape(v, dims);
}

orr_status* forward(void*, int32_t, const orr_op_call* call, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    int32_t mean = -1;
    const int32_t d = centered(w, call, in[0], mean);
    out[0] = as_results(w, mean);
    out[1] = as_results(w, w.div(w.sum_of_rows(w.mul(d, d)), columns_of(call)));
  });
}

// dx = (dmean + 2 dvariance (x - mean)) / columns.
orr_status* backward(void*, int32_t, const orr_op_call* call, orr_program* program,
                     const orr_writer* writer, const int32_t* in, const int32_t*, const int32_t* dy,
                     int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    int32_t mean = -1;
    const int32_t d = centered(w, call, in[0], mean);
    int32_t slope = dy[1] < 0 ? -1 : w.mul(w.mul(as_rows(w, dy[1]), 2.0), d);
    if (dy[0] >= 0) {
      const int32_t ones = w.add(w.mul(d, 0.0), as_rows(w, dy[0]));
      slope = slope < 0 ? ones : w.add(slope, ones);
    }
    dx[0] = w.div(slope, columns_of(call));
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward, t.backward_of = backward, t.factors = factors, t.cost = cost;
  return t;
}
constexpr orr_op_api op = op_table();

// -- its kernel -----------------------------------------------------------------------------------

struct Kernel {
  int32_t dtype;
  int64_t rows, columns;
};

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

const char* why_not(const orr_op& asked) {
  if (std::string_view(asked.kind) != "moments") return "only moments is here";
  const orr_tensor& x = asked.in[0];
  if (x.dtype != ORR_F32 && x.dtype != ORR_F64) return "only f32 and f64 are here";
  return x.dims[x.rank - 1] <= 4096 ? nullptr : "only rows of up to 4096 are here";
}

void supports(void*, const orr_op* asked, orr_support* out) {
  const char* reason = why_not(*asked);
  out->score = reason ? 0 : 1;
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "Welford");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* asked, orr_kernel** out) {
  return orr::guard([&] {
    const orr_tensor& x = asked->in[0];
    auto kernel =
        std::make_unique<Kernel>(Kernel{x.dtype, orr::elements(asked->out[0]), x.dims[x.rank - 1]});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

template <class T>
void moments(const Kernel& k, const T* x, T* mean, T* variance) {
  orr::parallel_for(k.rows, [&](int64_t r) {
    T middle = 0, squares = 0;
    for (int64_t i = 0; i < k.columns; ++i) {
      const T off = x[r * k.columns + i] - middle;
      middle += off / static_cast<T>(i + 1);
      squares += off * (x[r * k.columns + i] - middle);
    }
    mean[r] = middle, variance[r] = squares / static_cast<T>(k.columns);
  });
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
    if (k.dtype == ORR_F32)
      moments(k, orr::data<const float>(in[0]), orr::data<float>(out[0]), orr::data<float>(out[1]));
    else
      moments(k, orr::data<const double>(in[0]), orr::data<double>(out[0]),
              orr::data<double>(out[1]));
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

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, "moments", "1.0.0", "Mean and variance of rows", entry, 2,
           {{"op", 1, 1}, {"kernel", 1, 1}})
