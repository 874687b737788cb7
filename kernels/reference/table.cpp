// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <orrery/sdk/joined.hpp>
#include <vector>

#include "op.h"
#include "owned_op.h"

// Made by prepare, opaque to the host.
struct orr_kernel {
  reference::OwnedOp op;
  const reference::Family* family;
  orr::JoinedOp::Places places;
  uint64_t own;  // bytes of the family's workspace
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
    &norm_grad_family,          &reduce_each_family,        &pointwise_next_family,
    &gather_matmul_family,      &scatter_matmul_family};
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

uint64_t own_workspace(const orr_op& op) {
  const Family& f = checked_family(op);
  return f.workspace ? f.workspace(op) : 0;
}

orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  return orr::guard([&] {
    if (!program->fused) return;
    orr::claim_norm_grads(*program, *claims);
    orr::claim_sums(*program, *claims);
    orr::claim_rows_next(*program, *claims);
  });
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  if (bytes) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  *out = orr_support{};
  out->size = sizeof(*out);
  try {
    const orr::JoinedOp one(*op);
    const Family& f = checked_family(one.get());
    out->score = 1;
    orr::copy_text(out->numerics, f.numerics);
    out->strided_in = f.strided_in;
    out->strided_out = f.strided_out;
    out->inplace = f.inplace ? f.inplace(one.get()) : 0;
    // All that there is.
    out->takes = ORR_TAKES_GROUPED_HEADS | ORR_TAKES_WINDOW | ORR_TAKES_GROUPED_SUMS;
    one.answer(*out);
  } catch (const std::exception& e) {
    *out = orr_support{};
    out->size = sizeof(*out);
    orr::copy_text(out->reason, e.what());
  }
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    const orr::JoinedOp one(*op);
    *out = {sizeof(*out), one.places().workspace(own_workspace(one.get()))};
  });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const orr::JoinedOp one(*op);
    *out = new orr_kernel{OwnedOp(one.get()), &checked_family(one.get()), one.places(),
                          own_workspace(one.get())};
  });
}

void release(void*, orr_kernel* kernel) { delete kernel; }

// The kernel's tensors among those of the launch.
std::vector<orr_buffer> pick(const orr_kernel& kernel, const std::vector<int32_t>& places,
                             const orr_buffer* from, const orr_buffer* workspace) {
  std::vector<orr_buffer> found;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] >= 0) {
      found.push_back(from[places[i]]);
      continue;
    }
    const uint64_t at = orr::JoinedOp::Places::begin(kernel.own) + kernel.places.spare[i];
    found.push_back({workspace->memory, workspace->offset + at, workspace->bytes - at});
  }
  return found;
}

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer* workspace) {
  return orr::guard([&] {
    const auto from = pick(*kernel, kernel->places.in, in, workspace);
    const auto to = pick(*kernel, kernel->places.out, out, workspace);
    kernel->family->run({kernel->op.get(), from.data(), to.data(),
                         workspace ? orr::data<char>(*workspace) : nullptr});
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
                             claim};

}  // namespace

const orr_kernel_api& table() { return kApi; }

}  // namespace reference
