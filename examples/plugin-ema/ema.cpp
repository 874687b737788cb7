// SPDX-License-Identifier: Apache-2.0
//
// An op that no ops of the core make up, with its kernel and gradient: the exponential moving
// average along the last dim, y[t] = keep * y[t-1] + (1 - keep) * x[t] from y = 0 on, or, with
// reverse = 1, from the end. Scripts call orrery.ops.ema(x, {keep = 0.9}).
//
// It is linear in x: as a matrix, the reverse one is its transpose, so that its gradient is the
// same op in the other direction.
#include <algorithm>
#include <memory>
#include <orrery/sdk/op.hpp>

namespace {

// -- the op ---------------------------------------------------------------------------------------

const orr_attr options[] = {orr::real_attr("keep", 0.9), orr::int_attr("reverse", 0)};

int32_t count(void*) { return 1; }

orr_status* describe(void*, int32_t, orr_op_info* out) {
  out->name = "ema", out->summary = "exponential moving average along the last dim";
  out->n_in = 1, out->gradient = 1, out->kernel = 1, out->n_examples = 2;
  out->options = options, out->n_options = 2;
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
    if (x.rank < 1 || (x.dtype != ORR_F32 && x.dtype != ORR_F64))
      throw orr::Error(ORR_INVALID, "ema needs f32 or f64 with at least one dim");
    *out = x;
  });
}

// Every dim but the last may be cut.
orr_status* factors(void*, int32_t, const orr_op_call* call, int32_t, int32_t* out) {
  for (int32_t d = 0; d < call->in[0].rank; ++d) out[d] = d + 1 < call->in[0].rank ? d : -1;
  return nullptr;
}

orr_status* backward(void*, int32_t, const orr_op_call* call, orr_program* program,
                     const orr_writer* writer, const int32_t*, int32_t, int32_t dy, int32_t* dx) {
  return orr::guard([&] {
    dx[0] = orr::Writer(program, writer)
                .op("ema", {dy},
                    {orr::real_attr("keep", call->options[0].f),
                     orr::int_attr("reverse", 1 - call->options[1].i)});
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.backward = backward, t.factors = factors;
  return t;
}
constexpr orr_op_api op = op_table();

// -- its kernel -----------------------------------------------------------------------------------

struct Kernel {
  int32_t dtype;
  int64_t rows, columns;
  double keep;
  bool reverse;
};

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

const char* why_not(const orr_op& asked) {
  if (std::string_view(asked.kind) != "ema") return "only ema is here";
  const int32_t dtype = asked.in[0].dtype;
  return dtype == ORR_F32 || dtype == ORR_F64 ? nullptr : "only f32 and f64 are here";
}

void supports(void*, const orr_op* asked, orr_support* out) {
  const char* reason = why_not(*asked);
  out->score = reason ? 0 : 1;
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "in order");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* asked, orr_kernel** out) {
  return orr::guard([&] {
    const orr_tensor& x = asked->in[0];
    const int64_t columns = x.dims[x.rank - 1];
    auto kernel = std::make_unique<Kernel>(Kernel{x.dtype, columns ? orr::elements(x) / columns : 0,
                                                  columns, orr::attr_real(*asked, "keep", 0.9),
                                                  orr::attr_int(*asked, "reverse", 0) != 0});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

template <class T>
void average(const Kernel& k, const T* x, T* y) {
  const T keep = static_cast<T>(k.keep), take = 1 - keep;
  orr::parallel_for(k.rows, [&](int64_t r) {
    T last = 0;
    for (int64_t i = 0; i < k.columns; ++i) {
      const int64_t at = r * k.columns + (k.reverse ? k.columns - 1 - i : i);
      last = keep * last + take * x[at];
      y[at] = last;
    }
  });
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
    if (k.dtype == ORR_F32)
      average(k, orr::data<const float>(in[0]), orr::data<float>(out[0]));
    else
      average(k, orr::data<const double>(in[0]), orr::data<double>(out[0]));
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

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, "ema", "1.0.0", "Exponential moving averages", entry, 2,
           {{"op", 1, 1}, {"kernel", 1, 1}})
