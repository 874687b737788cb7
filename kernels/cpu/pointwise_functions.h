// SPDX-License-Identifier: Apache-2.0
//
// Functions of pointwise expressions that vmath.h does not have, for the block machine and the
// translator.
#pragma once

#include <orrery/ops.h>

#include "float8.h"
#include "vmath.h"

namespace orr_cpu::ORR_ISA {

ORR_INLINE v16f from_mask(m16 m) { return as_float(mask_to_int(m)); }
ORR_INLINE m16 to_mask(v16f x) { return int_to_mask(as_int(x)); }

ORR_INLINE v16f sign(v16f x) {
  v16f one = splat(1.0f), zero = splat(0.0f);
  v16f s = select(x > zero, one, select(x < zero, -one, zero));
  return select(is_nan(x), x, s);
}

// Calls use(f) with the function `fn` on lanes, which for mod has a second argument. Returns
// whether there is one; other functions exist only for single numbers.
template <class Use>
ORR_INLINE bool each_lane(int fn, Use&& use) {
  switch (fn) {
    case ORR_FN_EXP: return use([](v16f x, v16f) { return exp(x); }), true;
    case ORR_FN_LOG: return use([](v16f x, v16f) { return log(x); }), true;
    case ORR_FN_TANH: return use([](v16f x, v16f) { return tanh(x); }), true;
    case ORR_FN_SIGMOID: return use([](v16f x, v16f) { return sigmoid(x); }), true;
    case ORR_FN_ERF: return use([](v16f x, v16f) { return erf(x); }), true;
    case ORR_FN_GELU: return use([](v16f x, v16f) { return gelu(x); }), true;
    case ORR_FN_GELU_GRAD: return use([](v16f x, v16f) { return gelu_grad(x); }), true;
    case ORR_FN_MOD: return use([](v16f x, v16f y) { return x - floor(x / y) * y; }), true;
    default: return false;
  }
}

}  // namespace orr_cpu::ORR_ISA
