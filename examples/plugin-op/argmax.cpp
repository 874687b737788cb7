// SPDX-License-Identifier: Apache-2.0
//
// argmax of f32 rows and nothing else: sixteen running maxima, which a compiler keeps in vector
// registers, and one look for where the largest came first. Whatever else a run asks for is
// answered by other kernel plugins.
#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <memory>

namespace {

struct Kernel {
  int64_t rows, columns;
};

const char* why_not(const orr_op& op) {
  if (std::string_view(op.kind) != "argmax") return "only argmax is here";
  if (op.n_in != 1 || op.in[0].dtype != ORR_F32) return "only f32 is here";
  if (op.n_out != 1 || op.out[0].dtype != ORR_I64) return "the result is i64";
  if (op.in[0].rank != 2 || op.in[0].dims[1] < 1) return "rows of at least one element are here";
  return nullptr;
}

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  const char* reason = why_not(*op);
  out->score = reason ? 0 : 120;  // above a kernel made for this machine
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "exact");
  out->strided_in = out->strided_out = 0;
  out->inplace = out->capturable = 0;
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    auto kernel = std::make_unique<Kernel>(Kernel{op->in[0].dims[0], op->in[0].dims[1]});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

float largest(const float* x, int64_t n) {
  constexpr int64_t lanes = 16;
  float best[lanes];
  std::fill_n(best, lanes, x[0]);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t j = 0; j < lanes; ++j) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
  for (; i < n; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
  return *std::max_element(best, best + lanes);
}

orr_status* launch(orr_kernel* handle, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const auto& kernel = *reinterpret_cast<const Kernel*>(handle);
    const float* x = orr::data<float>(in[0]);
    int64_t* y = orr::data<int64_t>(out[0]);
    orr::parallel_for(kernel.rows, [&](int64_t r) {
      const float* row = x + r * kernel.columns;
      y[r] = std::find(row, row + kernel.columns, largest(row, kernel.columns)) - row;
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

ORR_PLUGIN(ORR_KIND_KERNEL, "argmax", "1.0.0", "argmax of f32 rows", entry, 1, {{"kernel", 1, 1}})
