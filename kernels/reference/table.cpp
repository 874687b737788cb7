// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>

#include "op.h"
#include "owned_op.h"

// Made by prepare, opaque to the host.
struct orr_kernel {
  reference::OwnedOp op;
  const reference::Family* family;
};

namespace reference {
namespace {

// clang-format off
const Family* const kFamilies[] = {
    &pointwise_family,          &matmul_family,             &reduce_family,
    &argmax_family,             &topk_family,               &softmax_family,
    &softmax_grad_family,       &layernorm_family,          &layernorm_grad_family,
    &rmsnorm_family,            &rmsnorm_grad_family,       &norm_param_grad_family,
    &attention_family,          &attention_grad_family,     &cross_entropy_family,
    &cross_entropy_grad_family, &gather_family,             &scatter_add_family,
    &slice_at_family,           &update_slice_family,       &iota_family,
    &categorical_family,        &matmul_pointwise_family,   &fold_family,
    &norm_grad_family,          &reduce_each_family,        &pointwise_next_family};
// clang-format on

const Family& family_of(const orr_op& op) {
  for (const Family* f : kFamilies)
    if (std::string_view(op.kind) == f->kind) return *f;
  throw Unsupported(std::string("no such op: ") + op.kind);
}

const Family& checked_family(const orr_op& op) {
  const Family& f = family_of(op);
  require_layout(op.in, op.n_in, f.strided_in, "input");
  require_layout(op.out, op.n_out, f.strided_out, "output");
  f.check(op);
  return f;
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  if (bytes) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  *out = orr_support{};
  out->size = sizeof(*out);
  try {
    const Family& f = checked_family(*op);
    out->score = 1;
    orr::copy_text(out->numerics, f.numerics);
    out->strided_in = f.strided_in;
    out->strided_out = f.strided_out;
    out->inplace = f.inplace ? f.inplace(*op) : 0;
  } catch (const std::exception& e) {
    orr::copy_text(out->reason, e.what());
  }
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    const Family& f = checked_family(*op);
    *out = {sizeof(*out), f.workspace ? f.workspace(*op) : 0};
  });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] { *out = new orr_kernel{OwnedOp(*op), &checked_family(*op)}; });
}

void release(void*, orr_kernel* kernel) { delete kernel; }

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer* workspace) {
  return orr::guard([&] {
    kernel->family->run(
        {kernel->op.get(), in, out, workspace ? orr::data<char>(*workspace) : nullptr});
  });
}

const orr_kernel_api kApi = {sizeof(orr_kernel_api),
                             nullptr,
                             "host",
                             probe,
                             supports,
                             measure,
                             prepare,
                             release,
                             launch,
                             nullptr};

}  // namespace

const orr_kernel_api& table() { return kApi; }

}  // namespace reference
