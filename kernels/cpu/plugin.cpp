// SPDX-License-Identifier: Apache-2.0
//
// The plugin "cpu": own kernels for x86-64 with AVX2, FMA and F16C, with AVX-512 where the machine
// has it, and for AArch64 with NEON. All give the same bits, so they share their numerics ids.
#include <orrery/facts.h>
#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <cstring>

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

void supports(void*, const orr_op* op, orr_support* out) {
  orr_support answer{};
  answer.size = sizeof answer;
  answer.score = 100;
  const Op* row = find(*op);
  if (!row)
    refuse(answer, "not among the cpu kernels");
  else if (!knows_types(*op))
    refuse(answer, "a tensor of a type that is not known here");
  else
    row->supports(*op, answer);
  *out = answer;
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    const Op& row = get(*op);
    *out = {sizeof *out, row.workspace ? row.workspace(*op) : 0};
  });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_kernel*>(get(*op).make[chosen()](*op)); });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer* workspace) {
  return orr::guard([&] { reinterpret_cast<Kernel*>(kernel)->launch(in, out, workspace); });
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
                            nullptr};

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
