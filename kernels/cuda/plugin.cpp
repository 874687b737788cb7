// SPDX-License-Identifier: Apache-2.0
//
// The plugin "cuda": an NVIDIA GPU as a device, and the ops on it. It can be loaded everywhere;
// probe says what is missing.
#include <orrery/sdk/plugin.hpp>

#include <orrery/sdk/joined.hpp>
#include <vector>

#include "device.h"
#include "op.h"

namespace orr_cuda {
namespace {

struct Kernel {
  std::unique_ptr<Prepared> prepared;
  std::vector<CUdeviceptr> in, out;  // filled by each launch
  JoinedOp::Places places;
  uint64_t own;  // bytes of the family's workspace
};

const Family& family_of(const orr_op& op) {
#define ORR_ADDRESS(kind) &kind##_family,
  for (const Family* f : {ORR_FAMILIES(ORR_ADDRESS)})
    if (std::string_view(op.kind) == f->kind) return *f;
  throw Unsupported(std::string("not among the cuda kernels: ") + op.kind);
}

// The answer of the op's family. Layouts are no reason to refuse: the host packs what has no bit in
// strided_in. Throws Unsupported.
const Family& ask(const orr_op& op, orr_support& out) {
  const Family& family = family_of(op);
  require_layout(op.in, op.n_in, ~0u, "input");
  require_layout(op.out, op.n_out, ~0u, "output");
  out = orr_support{};
  out.size = sizeof out;
  out.score = 100;
  out.capturable = 1;
  family.supports(op, out);
  return family;
}

const Family& checked_family(const orr_op& op) {
  orr_support support;
  const Family& family = ask(op, support);
  require_layout(op.in, op.n_in, support.strided_in, "input");
  require_layout(op.out, op.n_out, support.strided_out, "output");
  return family;
}

// Sums do not write the terms that nothing else reads.
bool skips_unread(const orr_op& op) {
  return is_kind(op, "pointwise_next") && orr::attr_text(op, "next", "") == "reduce";
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  const std::string why = why_not_here();
  snprintf(reason, bytes, "%s", why.c_str());
  return why.empty() ? 100 : 0;
}

void supports(void*, const orr_op* op, orr_support* out) {
  try {
    const JoinedOp one(*op, skips_unread);
    ask(one.get(), *out);
    one.answer(*out);
  } catch (const std::exception& e) {
    *out = orr_support{};
    out->size = sizeof *out;
    orr::copy_text(out->reason, e.what());
  }
}

uint64_t own_workspace(const orr_op& op) {
  const Family& family = checked_family(op);
  return family.measure ? family.measure(op) : 0;
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    const JoinedOp one(*op, skips_unread);
    *out = {sizeof *out, one.places().workspace(own_workspace(one.get()))};
  });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const JoinedOp one(*op, skips_unread);
    const Family& family = checked_family(one.get());
    enter();
    using Addresses = std::vector<CUdeviceptr>;
    *out = reinterpret_cast<orr_kernel*>(
        new Kernel{family.prepare(one.get()), Addresses(size_t(one.get().n_in)),
                   Addresses(size_t(one.get().n_out)), one.places(), own_workspace(one.get())});
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

orr_status* launch(orr_kernel* opaque, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer* workspace) {
  return orr::guard([&] {
    Kernel& kernel = *reinterpret_cast<Kernel*>(opaque);
    const JoinedOp::Places& at = kernel.places;
    const CUdeviceptr work = workspace ? address(*workspace) : 0;
    for (size_t i = 0; i < kernel.in.size(); ++i) kernel.in[i] = address(in[at.in[i]]);
    for (size_t i = 0; i < kernel.out.size(); ++i)
      kernel.out[i] = at.out[i] >= 0               ? address(out[at.out[i]])
                      : at.spare[i] == at.kNowhere ? 0
                                                   : work + at.begin(kernel.own) + at.spare[i];
    enter();
    kernel.prepared->launch(reinterpret_cast<CUstream>(stream),
                            {kernel.in.data(), kernel.out.data(), work});
  });
}

// After the core's own fusions: what is added to a gradient is then one op.
orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  return orr::guard([&] {
    if (!program->fused) return;
    claim_norm_grads(*program, *claims);
    claim_sums(*program, *claims);
    claim_two_sums(*program, *claims);
    claim_sums_next(*program, *claims);
    claim_rows_next(*program, *claims);
    claim_sums_before(*program, *claims);
  });
}

const orr_kernel_api kernel_api = {sizeof(orr_kernel_api),
                                   nullptr,
                                   "cuda",
                                   probe,
                                   supports,
                                   measure,
                                   prepare,
                                   release,
                                   launch,
                                   claim};

const void* get_table(void*, const char* id, uint32_t version) {
  if (version != 1) return nullptr;
  if (std::string_view(id) == "kernel") return &kernel_api;
  return std::string_view(id) == "device" ? &device_api : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof *out, nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace
}  // namespace orr_cuda

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_DEVICE, "cuda", "1.0.0", "An NVIDIA GPU and the ops on it",
           orr_cuda::entry, 2, {{"kernel", 1, 1}, {"device", 1, 1}})
