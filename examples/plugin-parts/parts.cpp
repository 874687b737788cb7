// SPDX-License-Identifier: Apache-2.0
//
// Two ops along rows: orrery.ops.log_softmax(x), and orrery.ops.log_sum_exp(x), which has one
// number for each row. They have kernels that need whole rows, and known ops for where no kernel
// takes them. Where rows are cut over ranks (strategy.tensor), `on_parts` writes what each rank
// does: it exchanges the largest element and the sum of each row, instead of the rows.
#include <algorithm>
#include <cmath>
#include <memory>
#include <orrery/sdk/op.hpp>

namespace {

enum { kLogSoftmax, kLogSumExp };

// -- the ops --------------------------------------------------------------------------------------

int32_t count(void*) { return 2; }

orr_status* describe(void*, int32_t which, orr_op_info* out) {
  out->name = which == kLogSoftmax ? "log_softmax" : "log_sum_exp";
  out->summary = which == kLogSoftmax ? "logarithm of softmax over the last dim"
                                      : "log(sum(exp(x))) over the last dim";
  out->n_in = 1, out->gradient = 1, out->kernel = 2, out->n_examples = 2;
  return nullptr;
}

orr_status* example(void*, int32_t, int32_t number, orr_tensor* in) {
  in[0].dtype = ORR_F32, in[0].rank = 2 + number;
  in[0].dims[0] = 6, in[0].dims[1] = number ? 2 : 5, in[0].dims[2] = 7;
  return nullptr;
}

orr_status* shape(void*, int32_t which, const orr_op_call* call, orr_tensor* out) {
  return orr::guard([&] {
    const orr_tensor& x = call->in[0];
    if (x.rank < 1 || x.dtype > ORR_F16)
      throw orr::Error(ORR_INVALID, "needs real numbers with at least one dim");
    *out = x;
    if (which == kLogSumExp) --out->rank;
  });
}

// Every dim but the last may be cut for the kernel, and the last one for `on_parts`.
orr_status* factors(void*, int32_t which, const orr_op_call* call, int32_t input, int32_t* out) {
  const int32_t last = call->in[0].rank - 1;
  for (int32_t d = 0; d < last; ++d) out[d] = d;
  if (which == kLogSoftmax || input >= 0) out[last] = -1;
  return nullptr;
}
orr_status* part_factors(void*, int32_t which, const orr_op_call* call, int32_t input,
                         int32_t* out) {
  if (which == kLogSoftmax || input >= 0) out[call->in[0].rank - 1] = 0;
  return nullptr;
}

int32_t max_of_rows(const orr::Writer& w, int32_t x) {
  std::vector<int64_t> rows = w.dims(x);
  const auto rank = static_cast<int64_t>(rows.size());
  rows.back() = 1;
  const int32_t most = w.op(
      "reduce", {x},
      {orr::text_attr("fn", "max"), orr::int_attr("begin", rank - 1), orr::int_attr("end", rank)});
  return w.reshape(most, rows);
}

// log(sum(exp(x))) of each row, [..., 1]. `cut`: x has a part of each row.
int32_t log_sum_exp(const orr::Writer& w, int32_t x, bool cut) {
  int32_t most = max_of_rows(w, x);
  if (cut) most = w.max_over_ranks(most);
  int32_t sum = w.sum_of_rows(w.pointwise(ORR_FN_EXP, {w.sub(x, most)}));
  if (cut) sum = w.sum_over_ranks(sum);
  return w.add(most, w.pointwise(ORR_FN_LOG, {sum}));
}

int32_t written(const orr::Writer& w, int32_t which, int32_t x, bool cut) {
  const int32_t lse = log_sum_exp(w, x, cut);
  if (which == kLogSoftmax) return w.sub(x, lse);
  std::vector<int64_t> rows = w.dims(lse);
  rows.pop_back();
  return w.reshape(lse, rows);
}

orr_status* forward(void*, int32_t which, const orr_op_call*, orr_program* program,
                    const orr_writer* writer, const int32_t* in, int32_t* out) {
  return orr::guard([&] { *out = written(orr::Writer(program, writer), which, in[0], false); });
}
orr_status* on_parts(void*, int32_t which, const orr_op_call*, const orr_op_part*,
                     orr_program* program, const orr_writer* writer, const int32_t* in,
                     int32_t* out) {
  return orr::guard([&] { *out = written(orr::Writer(program, writer), which, in[0], true); });
}

// dx = dy - softmax(x) * sum(dy), or dy * softmax(x).
orr_status* backward(void*, int32_t which, const orr_op_call*, orr_program* program,
                     const orr_writer* writer, const int32_t* in, int32_t y, int32_t dy,
                     int32_t* dx) {
  return orr::guard([&] {
    const orr::Writer w(program, writer);
    if (which == kLogSoftmax) {
      const int32_t softmax = w.pointwise(ORR_FN_EXP, {y});
      dx[0] = w.sub(dy, w.mul(softmax, w.sum_of_rows(dy)));
      return;
    }
    std::vector<int64_t> rows = w.dims(y);
    rows.push_back(1);
    const int32_t softmax = w.pointwise(ORR_FN_EXP, {w.sub(in[0], w.reshape(y, rows))});
    dx[0] = w.mul(w.reshape(dy, rows), softmax);
  });
}

constexpr orr_op_api op_table() {
  orr_op_api t{};
  t.size = sizeof t, t.count = count, t.describe = describe, t.example = example, t.shape = shape;
  t.forward = forward, t.backward = backward, t.factors = factors;
  t.part_factors = part_factors, t.on_parts = on_parts;
  return t;
}
constexpr orr_op_api op = op_table();

// -- the kernel -----------------------------------------------------------------------------------

struct Kernel {
  int32_t dtype;
  bool sums;  // log_sum_exp
  int64_t rows, columns;
};

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

const char* why_not(const orr_op& asked) {
  const std::string_view kind = asked.kind;
  if (kind != "log_softmax" && kind != "log_sum_exp") return "only ops along rows are here";
  const orr_tensor& x = asked.in[0];
  if (x.dtype != ORR_F32 && x.dtype != ORR_F64) return "only f32 and f64 are here";
  return x.dims[x.rank - 1] > 0 ? nullptr : "only rows with elements are here";
}

void supports(void*, const orr_op* asked, orr_support* out) {
  const char* reason = why_not(*asked);
  out->score = reason ? 0 : 1;
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "largest first");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* asked, orr_kernel** out) {
  return orr::guard([&] {
    const orr_tensor& x = asked->in[0];
    const int64_t columns = x.dims[x.rank - 1];
    auto kernel =
        std::make_unique<Kernel>(Kernel{x.dtype, std::string_view(asked->kind) == "log_sum_exp",
                                        orr::elements(x) / columns, columns});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

template <class T>
void by_rows(const Kernel& k, const T* x, T* y) {
  orr::parallel_for(k.rows, [&](int64_t r) {
    const T* row = x + r * k.columns;
    const T most = *std::max_element(row, row + k.columns);
    T sum = 0;
    for (int64_t c = 0; c < k.columns; ++c) sum += std::exp(row[c] - most);
    const T lse = most + std::log(sum);
    if (k.sums) y[r] = lse;
    for (int64_t c = 0; !k.sums && c < k.columns; ++c) y[r * k.columns + c] = row[c] - lse;
  });
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const Kernel& k = *reinterpret_cast<Kernel*>(kernel);
    if (k.dtype == ORR_F32)
      by_rows(k, orr::data<const float>(in[0]), orr::data<float>(out[0]));
    else
      by_rows(k, orr::data<const double>(in[0]), orr::data<double>(out[0]));
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

ORR_PLUGIN(ORR_KIND_OP | ORR_KIND_KERNEL, "parts", "1.0.0", "Logarithms of softmax", entry, 2,
           {{"op", 1, 1}, {"kernel", 1, 1}})
