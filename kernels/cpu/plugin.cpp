// SPDX-License-Identifier: Apache-2.0
//
// The plugin "cpu": own kernels for x86-64 with AVX2, FMA and F16C, with AVX-512 where the machine
// has it, and for AArch64 with NEON. All give the same bits, so they share their numerics ids.
#include <orrery/facts.h>
#include <orrery/sdk/joined.hpp>
#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "instruction_sets.h"
#include "kernel.h"
#include "machine_facts.h"

// The tests build a second plugin, of another name, that never uses AVX-512.
#ifndef ORR_CPU_NAME
#define ORR_CPU_NAME "cpu"
#define ORR_CPU_WIDE true
#endif

namespace orr_cpu {
namespace {

const Op* find(const orr_op& op) {
  for (int i = 0; i < op_count; ++i)
    if (!std::strcmp(op_table[i].kind, op.kind)) return &op_table[i];
  return nullptr;
}

const Op& get(const orr_op& op) {
  const Op* row = find(op);
  if (!row) fail(ORR_UNIMPLEMENTED, "the cpu kernels have no op '%s'", op.kind);
  return *row;
}

// The instruction set of this process's kernels, or -1 and the reason.
int chosen(const char*& reason) {
  static const char* why = "";
  static const int found = best_isa(ORR_CPU_WIDE, why);
  reason = why;
  return found;
}
int chosen() {
  const char* reason;
  return chosen(reason);
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  const char* why;
  if (chosen(why) >= 0) return 100;
  std::strncpy(reason, why, bytes - 1);
  reason[bytes - 1] = 0;
  return 0;
}

// Whether this plugin knows all dtypes of the op. Newer headers may have more.
bool knows_types(const orr_op& op) {
  const auto unknown = [](const orr_tensor& t) { return orr_dtype_bytes(t.dtype) == 0; };
  return std::none_of(op.in, op.in + op.n_in, unknown) &&
         std::none_of(op.out, op.out + op.n_out, unknown);
}

orr_support answer_for(const orr_op& op) {
  orr_support answer{};
  answer.size = sizeof answer;
  answer.score = 100;
  const Op* row = find(op);
  if (!row)
    refuse(answer, "not among the cpu kernels");
  else if (!knows_types(op))
    refuse(answer, "a tensor of a type that is not known here");
  else
    row->supports(op, answer);
  return answer;
}

// Of a group the answer is that for the one op that a kernel computes in its place.
void supports(void*, const orr_op* op, orr_support* out) {
  if (!op->group) {
    *out = answer_for(*op);
    return;
  }
  try {
    const orr::JoinedOp one(*op);
    *out = answer_for(one.get());
    one.answer(*out);
  } catch (const std::exception& e) {
    *out = orr_support{};
    out->size = sizeof *out;
    refuse(*out, e.what());
  }
}

uint64_t workspace_of(const orr_op& op) {
  const Op& row = get(op);
  return row.workspace ? row.workspace(op) : 0;
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    const orr::JoinedOp one(*op);
    *out = {sizeof *out, one.places().workspace(workspace_of(one.get()))};
  });
}

// A kernel, and which of a launch's tensors are its own if it computes a group.
struct Prepared {
  std::unique_ptr<Kernel> kernel;
  std::vector<int32_t> in, out;
};

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const orr::JoinedOp one(*op);
    auto made = std::make_unique<Prepared>();
    made->kernel.reset(get(one.get()).make[chosen()](one.get()));
    if (op->group) made->in = one.places().in, made->out = one.places().out;
    *out = reinterpret_cast<orr_kernel*>(made.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Prepared*>(kernel); }

orr_status* launch(orr_kernel* opaque, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer* workspace) {
  return orr::guard([&] {
    Prepared& prepared = *reinterpret_cast<Prepared*>(opaque);
    if (prepared.in.empty()) return prepared.kernel->launch(in, out, workspace);
    std::vector<orr_buffer> from, to;
    for (int32_t i : prepared.in) from.push_back(in[i]);
    for (int32_t i : prepared.out) to.push_back(out[i]);
    prepared.kernel->launch(from.data(), to.data(), workspace);
  });
}

// After the core's own fusions: what is added to a gradient is then one op.
orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  return orr::guard([&] {
    if (program->fused) orr::claim_sums_before(*program, *claims);
  });
}

const orr_kernel_api api = {sizeof(orr_kernel_api),
                            nullptr,
                            "host",
                            probe,
                            supports,
                            measure,
                            prepare,
                            release,
                            launch,
                            claim};

orr_status* tell(void*, void (*say)(void*, const char*, const char*), void* arg) {
  return orr::guard([&] {
    for (const Fact& fact : machine_facts(ORR_CPU_NAME, chosen()))
      say(arg, fact.name.c_str(), fact.text.c_str());
  });
}

const orr_facts_api facts = {sizeof(orr_facts_api), nullptr, tell};

const void* get_table(void*, const char* id, uint32_t version) {
  if (version != 1) return nullptr;
  if (!std::strcmp(id, "facts")) return &facts;
  return !std::strcmp(id, "kernel") ? &api : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof *out, nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace
}  // namespace orr_cpu

ORR_PLUGIN(ORR_KIND_KERNEL, ORR_CPU_NAME, "0.1.0",
           "Kernels for x86-64 with AVX2 or AVX-512, and for AArch64", orr_cpu::entry, 2,
           {{"kernel", 1, 1}, {"facts", 1, 1}})
