// @name@: the row softmax in f32. See orrery/kernel.h for the calls and orrery/ops.h for the op.
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <cmath>
#include <memory>

namespace {

struct Kernel {
  int64_t rows, columns;
};

std::string why_not(const orr_op& op) {
  if (std::string_view(op.kind) != "softmax") return "only softmax is here";
  if (op.n_in != 1 || op.n_out != 1) return "softmax has one input and one output";
  for (const orr_tensor* t : {op.in, op.out}) {
    if (t->dtype != ORR_F32) return "only f32 is here";
    if (t->rank != 2 || t->dims[0] != op.in->dims[0] || t->dims[1] != op.in->dims[1])
      return "shapes differ";
  }
  return "";
}

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  const std::string reason = why_not(*op);
  out->score = reason.empty() ? 110 : 0;  // more than the 100 of Orrery's own kernels
  orr::copy_text(out->reason, reason);
  // Equal ids promise equal bits: name whatever decides about yours.
  orr::copy_text(out->numerics, "@name@ softmax: sum in row order");
  out->strided_in = out->strided_out = 0;
  out->inplace = 1;
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  return orr::guard([&] { out->workspace = 0; });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    auto kernel = std::make_unique<Kernel>(Kernel{op->in->dims[0], op->in->dims[1]});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

void softmax_row(const float* x, float* y, int64_t n) {
  float top = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - top);
  const float scale = 1 / sum;
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

orr_status* launch(orr_kernel* handle, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const auto& kernel = *reinterpret_cast<const Kernel*>(handle);
    const float* x = orr::data<float>(in[0]);
    float* y = orr::data<float>(out[0]);
    orr::parallel_for(kernel.rows, [&](int64_t r) {
      softmax_row(x + r * kernel.columns, y + r * kernel.columns, kernel.columns);
    });
  });
}

const orr_kernel_api table = {sizeof(orr_kernel_api),
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
    return std::string_view(id) == "kernel" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL, "@name@", "0.1.0", "Row softmax in f32", entry, 1, {{"kernel", 1, 1}})
