// SPDX-License-Identifier: Apache-2.0
//
// Bad kernels.
#include "fault.h"
#include "good_kernel.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <cfenv>
#include <cstdlib>

namespace {

bool is_gradient(const orr_op& op) { return std::string_view(op.kind) == "softmax_grad"; }

// dx = y * (dy - sum of dy * y), and a factor that is not there.
void wrong_gradient(const Kernel& kernel, const orr_buffer* in, const orr_buffer* out) {
  for (int64_t r = 0; r < kernel.rows; ++r) {
    const int64_t n = kernel.columns;
    const float *dy = orr::data<float>(in[0]) + r * n, *y = orr::data<float>(in[1]) + r * n;
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += dy[i] * y[i];
    for (int64_t i = 0; i < n; ++i)
      orr::data<float>(out[0])[r * n + i] = 1.01f * y[i] * (dy[i] - sum);
  }
}

bool is_sum(const orr_op& op) {
  return op.n_in == 1 && std::string_view(op.kind) == "reduce" && op.in->dtype == ORR_F32 &&
         op.in->dims[0] == 1 && orr::attr_text(op, "fn", "") == "sum" && op.in->dims[2] > 1;
}

// Sums of columns, right but for their leaves: added one after another where a tree is due, or not
// cut at all.
struct Sum : Kernel {
  int64_t lo, leaves, total;
};

void wrong_sum(const Sum& s, const orr_buffer* in, const orr_buffer* out) {
  const float* x = orr::data<float>(in[0]);
  float* y = orr::data<float>(out[0]);
  int64_t at = s.lo;
  const int64_t length = s.rows / s.leaves;
  for (int64_t first = s.lo; orr_tree_node(&at, s.lo + s.leaves, s.total) > 0;
       first = at, y += s.columns)
    for (int64_t c = 0; c < s.columns; ++c) {
      y[c] = 0;
      for (int64_t leaf = first - s.lo; leaf < at - s.lo; ++leaf) {
        float sum = 0;
        for (int64_t r = leaf * length; r < (leaf + 1) * length; ++r) sum += x[r * s.columns + c];
        y[c] += sum;
      }
    }
}

bool sums() { return fault("adds_leaves_in_order") || fault("has_no_leaves"); }

void bad_supports(void* self, const orr_op* op, orr_support* out) {
  orr_op forward = *op;
  if (fault("gradient_off_by_a_factor") && is_gradient(*op) && op->n_in == 2)
    forward.kind = "softmax", forward.n_in = 1;
  table.supports(self, &forward, out);
  if (sums() && is_sum(*op))
    out->score = fault("has_no_leaves") && orr::attr(*op, "leaf_n") ? 0 : 60;
  if (fault("claims_everything")) out->score = 60;
  if (fault("gives_no_reasons")) out->reason[0] = 0;
  if (fault("has_no_name_for_its_numerics")) out->numerics[0] = 0;
  if (fault("works_in_place_of_input_8")) out->inplace = 9;
}

orr_status* bad_measure(void* self, const orr_op* op, orr_kernel_size* out) {
  orr_status* status = table.measure(self, op, out);
  if (fault("needs_more_than_it_measured")) out->workspace = 16;
  if (fault("measures_less_than_nothing")) out->workspace = static_cast<uint64_t>(-8);
  if (fault("writes_beyond_sizes")) reinterpret_cast<volatile char*>(out)[sizeof *out] = 0;
  return status;
}

thread_local bool prepared_here = false;

orr_status* bad_prepare(void* self, const orr_op* op, orr_kernel** out) {
  prepared_here = true;
  if (sums() && is_sum(*op)) {
    auto* sum = new Sum{{op->in->dims[1], op->in->dims[2]},
                        orr::attr_int(*op, "leaf_lo", 0),
                        orr::attr_int(*op, "leaf_n", 1),
                        orr::attr_int(*op, "leaf_total", 1)};
    *out = reinterpret_cast<orr_kernel*>(static_cast<Kernel*>(sum));
    return nullptr;
  }
  return table.prepare(self, op, out);
}

void bad_release(void* self, orr_kernel* kernel) {
  if (!fault("leaks_kernels")) table.release(self, kernel);
}

int launches = 0;

void spoil(const Kernel& kernel, const orr_buffer* in, const orr_buffer* out,
           const orr_buffer* workspace) {
  float* y = orr::data<float>(out[0]);
  const int64_t elements = kernel.rows * kernel.columns;
  if (elements == 0) return;
  if (fault("writes_outside_its_output")) y[elements] = 1;
  if (fault("writes_its_input") && y != orr::data<float>(in[0])) orr::data<float>(in[0])[0] += 1;
  if (fault("is_wrong_at_tails") && kernel.columns % 16 == 1) y[elements - 1] *= 1.1f;
  if (fault("is_wrong_at_width_77") && kernel.columns == 77) y[0] *= 1.1f;
  if (fault("depends_on_the_batch") && kernel.rows > 100) y[0] *= 1 + 1e-6f;
  if (fault("is_wrong_after_many_launches") && ++launches > 5) y[0] *= 1.1f;
  if (fault("depends_on_threads") && orr::host->threads() > 1) y[0] *= 1 + 1e-6f;
  if (fault("needs_more_than_it_measured")) std::memset(orr::data<char>(*workspace), 0, 64);
  if (fault("leaks_per_launch")) leak(32);
  if (fault("reads_behind_its_input")) [[maybe_unused]]
    volatile float far = orr::data<float>(in[0])[elements + 1024];
}

orr_status* bad_launch(orr_kernel* handle, orr_stream* stream, const orr_buffer* in,
                       const orr_buffer* out, const orr_buffer* workspace) {
  const auto& kernel = *reinterpret_cast<const Kernel*>(handle);
  while (fault("loops_in_a_launch")) pause();
  if (fault("overflows_the_stack")) deeper(nullptr);
  if (fault("launches_where_it_prepared") && !prepared_here) std::abort();
  if (fault("gradient_off_by_a_factor")) {
    wrong_gradient(kernel, in, out);
    return nullptr;
  }
  if (sums()) return wrong_sum(static_cast<const Sum&>(kernel), in, out), nullptr;
  orr_status* status = table.launch(handle, stream, in, out, workspace);
  spoil(kernel, in, out, workspace);
  return status;
}

orr_kernel_api bad_table() {
  orr_kernel_api bad = table;
  bad.supports = bad_supports, bad.measure = bad_measure, bad.prepare = bad_prepare;
  bad.release = bad_release, bad.launch = bad_launch;
  return bad;
}

const orr_kernel_api bad = bad_table();

const void* bad_get(void*, const char* id, uint32_t version) {
  if (fault("serves_anything")) return &bad;
  return std::string_view(id) == "kernel" && version == 1 ? &bad : nullptr;
}

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  entry(boot, out);
  if (fault("changes_the_rounding")) std::fesetround(FE_UPWARD);
  if (fault("crashes_at_exit")) std::atexit([] { std::abort(); });
  if (fault("fails_at_its_entry")) return orr::host->error(ORR_FAILED, "not today");
  if (fault("writes_beyond_exports")) reinterpret_cast<volatile char*>(out)[sizeof *out] = 0;
  out->get = bad_get;
  return nullptr;
}

}  // namespace

// The version script hides it in all but the one that is linked without.
extern "C" __attribute__((visibility("default"))) int orrery_museum_library() { return 1; }

ORR_PLUGIN(fault("lists_no_interface") ? ORR_KIND_KERNEL | ORR_KIND_OBSERVER : ORR_KIND_KERNEL,
           FAULT_NAME, "0.1.0", "A bad kernel", bad_entry, 1, {{"kernel", 1, 1}})
