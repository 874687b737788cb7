// SPDX-License-Identifier: Apache-2.0
//
// Functions that per-ISA files use from outside: errors, attributes, the host's threads. Compiled
// once.
#include <orrery/sdk/plugin.hpp>

#include <cstdarg>
#include <cstdio>

#include "kernel.h"
#include "machine_rates.h"

namespace orr_cpu {
namespace {

thread_local bool alone = false;

}  // namespace

Alone::Alone() { alone = true; }
Alone::~Alone() { alone = false; }

Kernel::~Kernel() = default;

void fail(int32_t code, const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  throw orr::Error(code, text);
}

int64_t attr_int(const orr_op& op, const char* name, int64_t fallback) {
  return orr::attr_int(op, name, fallback);
}
double attr_real(const orr_op& op, const char* name, double fallback) {
  return orr::attr_real(op, name, fallback);
}
const char* attr_text(const orr_op& op, const char* name, const char* fallback) {
  const orr_attr* a = orr::attr(op, name);
  return a ? a->text : fallback;
}

bool sums_into(int32_t from, int32_t to) {
  const bool from_short = from == ORR_BF16 || from == ORR_F16,
             to_short = to == ORR_BF16 || to == ORR_F16;
  return from == to || (from_short && to == ORR_F32) || (from == ORR_F32 && to_short);
}

void parallel_for(int64_t n, void (*fn)(void*, int64_t), void* arg) {
  if (!alone) return orr::host->parallel_for(n, fn, arg);
  for (int64_t i = 0; i < n; ++i) fn(arg, i);
}
int32_t threads() { return alone ? 1 : orr::host->threads(); }

void refuse(orr_support& out, const char* reason) {
  out.score = 0;
  orr::copy_text(out.reason, reason);
}
void accept(orr_support& out, const char* numerics) { orr::copy_text(out.numerics, numerics); }

}  // namespace orr_cpu
