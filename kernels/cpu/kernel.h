// SPDX-License-Identifier: Apache-2.0
//
// The frame of the cpu plugin. Files compiled per instruction set define, in namespace
// orr_cpu::ORR_ISA, one `make_<kind>` per op; the other files are compiled once.
//
// Per-ISA files must define no symbol outside their namespace: no std:: templates, no inline
// functions of other headers, because the linker would keep one copy for both instruction sets.
// What they need from outside is declared here and defined in support.cpp. The test "cpu isa
// symbols" checks this.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

namespace orr_cpu {

// A prepared op. `launch` may throw (see `fail`). [compute thread]
struct Kernel {
  virtual ~Kernel();
  virtual void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* workspace) = 0;
};

// Throws the error `code` with a printf-style message. Not inside a parallel task.
[[noreturn]] void fail(int32_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// An attribute of an op, or the fallback if it is absent.
int64_t attr_int(const orr_op& op, const char* name, int64_t fallback);
double attr_real(const orr_op& op, const char* name, double fallback);
const char* attr_text(const orr_op& op, const char* name, const char* fallback);

// The host's pool; see host.h. Per-ISA files call it through `parallel` of tasks.h.
void parallel_for(int64_t n, void (*fn)(void* arg, int64_t i), void* arg);
int32_t threads();

// Whether the CPU multiplies pairs of bf16 in one instruction (AVX512-BF16), and by that is faster
// than by two; measured once.
bool pairs_are_fast();

// Whether products of bf16 may use AMX's tiles. The process has then asked for them.
bool amx_works();

enum Isa { kAvx2, kAvx512, kNeon, kIsas };

// One op of the plugin. `supports` changes an answer that is preset to score 100, contiguous, not
// in place. `workspace` may be null: none is needed. `make` is by instruction set, null where that
// was not built (-Dcpu_isas).
struct Op {
  const char* kind;
  void (*supports)(const orr_op&, orr_support&);
  uint64_t (*workspace)(const orr_op&);
  Kernel* (*make[kIsas])(const orr_op&);
};

extern const Op op_table[];
extern const int op_count;

// Whether sums of real elements of one dtype may be stored as the other (ops.h, ANOTHER DTYPE).
// F8_E4M3 and F8_E5M2.
constexpr bool is_eight_bits(int32_t dtype) { return dtype == ORR_F8_E4M3 || dtype == ORR_F8_E5M2; }
bool sums_into(int32_t from, int32_t to);

// Helpers for `supports`.
void refuse(orr_support& out, const char* reason);
void accept(orr_support& out, const char* numerics);

}  // namespace orr_cpu
