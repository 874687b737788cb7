// SPDX-License-Identifier: Apache-2.0
//
// A fusion that the core does not know: rmsnorm and the product that reads it, y = rmsnorm(x) b or
// rmsnorm(x) b^T, as one kernel for f32. A normalised row goes from the norm into the product while
// it is in the cache, and is stored only if something else reads it. The bits are those of the two
// ops (orrery/ops.h), since every sum has its order.
#include <orrery/ops.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <orrery/sdk/plugin.hpp>
#include <vector>

namespace {

// -- which ops are claimed ------------------------------------------------------------------------

// The values of a claimed group: x, the norm's weight and the product's b go in; y, the normalised
// rows and their 1/rms come out, each if it is read.
struct Values {
  explicit Values(const orr_group& group)
      : norm(group.ops[0]), product(group.ops[1]), outside(group) {}
  const orr_group_op &norm, &product;
  const orr_group& outside;

  int32_t place(const int32_t* list, int32_t n, int32_t value) const {
    const int32_t* at = std::find(list, list + n, value);
    return at == list + n ? -1 : static_cast<int32_t>(at - list);
  }
  int32_t input(int32_t value) const { return place(outside.in, outside.n_in, value); }
  int32_t output(int32_t value) const { return place(outside.out, outside.n_out, value); }
};

bool is(const orr_op& op, std::string_view kind) { return op.kind == kind; }

bool all_f32(const orr_op& op) {
  const auto f32 = [](const orr_tensor& t) { return t.dtype == ORR_F32; };
  return std::all_of(op.in, op.in + op.n_in, f32) && std::all_of(op.out, op.out + op.n_out, f32);
}

// Whether `product` multiplies the rows that `norm` makes by a matrix.
bool fits(const orr_group_op& norm, const orr_group_op& product) {
  if (!is(*norm.op, "rmsnorm") || !is(*product.op, "matmul")) return false;
  const orr_op& op = *product.op;
  return norm.call == product.call && product.in[0] == norm.out[0] &&
         product.in[1] != norm.out[0] && op.in[1].rank == 2 && all_f32(*norm.op) && all_f32(op) &&
         orr::attr_int(op, "ta", 0) == 0 && !orr::attr(op, "leaf_n") &&
         norm.op->in[0].dims[norm.op->in[0].rank - 1] <= ORR_SUM_BLOCK;
}

orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  for (int32_t i = 0; i < program->n_ops; ++i)
    for (int32_t j = i + 1; j < program->n_ops; ++j) {
      const int32_t pair[] = {i, j};
      if (fits(program->ops[i], program->ops[j]) && claims->take(claims->arg, pair, 2)) break;
    }
  return nullptr;
}

// -- the kernel -----------------------------------------------------------------------------------

struct Kernel {
  int64_t rows, columns, outputs;
  double eps;
  bool transposed;             // b is [outputs, columns]
  int32_t x, weight, b;        // which input it is
  int32_t y, normed, inverse;  // which output; -1: none
};

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

const char* why_not(const orr_op& op) {
  if (!is(op, "group") || op.group->n_ops != 2) return "only rmsnorm with its product is here";
  return fits(op.group->ops[0], op.group->ops[1]) ? nullptr : "not this group";
}

void supports(void*, const orr_op* op, orr_support* out) {
  const char* reason = why_not(*op);
  out->score = reason ? 0 : 120;
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "ops.h");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const Values v(*op->group);
    const orr_op &norm = *v.norm.op, &product = *v.product.op;
    Kernel k{};
    k.columns = norm.in[0].dims[norm.in[0].rank - 1];
    k.rows = k.columns ? orr::elements(norm.in[0]) / k.columns : 0;
    k.eps = orr::attr_real(norm, "eps", 1e-5);
    k.transposed = orr::attr_int(product, "tb", 0) != 0;
    k.outputs = product.in[1].dims[k.transposed ? 0 : 1];
    k.x = v.input(v.norm.in[0]), k.weight = v.input(v.norm.in[1]), k.b = v.input(v.product.in[1]);
    k.normed = v.output(v.norm.out[0]), k.inverse = v.output(v.norm.out[1]);
    k.y = v.output(v.product.out[0]);
    *out = reinterpret_cast<orr_kernel*>(new Kernel(k));
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

// The row sum of squares of at most one block (orrery/ops.h, SUMS).
float sum_of_squares(const float* x, int64_t n) {
  float lane[16] = {};
  for (int64_t i = 0; i < n; ++i) lane[i % 16] += x[i] * x[i];
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

// The product of a row with column `o` of the matrix: blocks of ORR_MATMUL_K, each by fma in order.
float dot(const Kernel& k, const float* row, const float* b, int64_t o) {
  float sum = 0;
  for (int64_t first = 0; first < k.columns; first += ORR_MATMUL_K) {
    float block = 0;
    for (int64_t c = first; c < std::min<int64_t>(first + ORR_MATMUL_K, k.columns); ++c)
      block = std::fma(row[c], k.transposed ? b[o * k.columns + c] : b[c * k.outputs + o], block);
    sum = first ? sum + block : block;
  }
  return sum;
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
    const auto *x = orr::data<const float>(in[k.x]), *weight = orr::data<const float>(in[k.weight]),
               *b = orr::data<const float>(in[k.b]);
    const auto output = [&](int32_t i) { return i < 0 ? nullptr : orr::data<float>(out[i]); };
    float *y = output(k.y), *normed = output(k.normed), *inverse = output(k.inverse);
    orr::parallel_for(k.rows, [&](int64_t r) {
      float row[ORR_SUM_BLOCK];
      const float* from = x + r * k.columns;
      const float rms =
          1.0f / std::sqrt(sum_of_squares(from, k.columns) / static_cast<float>(k.columns) +
                           static_cast<float>(k.eps));
      for (int64_t c = 0; c < k.columns; ++c) row[c] = from[c] * rms * weight[c];
      if (normed) std::copy(row, row + k.columns, normed + r * k.columns);
      if (inverse) inverse[r] = rms;
      for (int64_t o = 0; y && o < k.outputs; ++o) y[r * k.outputs + o] = dot(k, row, b, o);
    });
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
                                claim};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "kernel" && version == 1 ? &kernels : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL, "group", "1.0.0", "rmsnorm with the product that reads it", entry, 1,
           {{"kernel", 1, 1}})
