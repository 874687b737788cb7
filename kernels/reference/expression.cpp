// SPDX-License-Identifier: Apache-2.0
//
// The interpreter of pointwise expressions, by instruction. Values are kept in the accumulator of
// their dtype and narrowed after every instruction, so that fusing two expressions changes no bit.
#include "expression.h"

#include "element.h"
#include "functions.h"

namespace reference {
namespace {

template <class A>
A* lanes(Register& r) {
  if constexpr (std::is_same_v<A, float>)
    return r.f;
  else if constexpr (std::is_same_v<A, double>)
    return r.d;
  else
    return r.i;
}

// Calls f(A{}) with the accumulator of `dtype`.
template <class F>
void with_accumulator(int32_t dtype, F&& f) {
  if (dtype == ORR_F64) return f(double{});
  if (is_real(dtype) || is_eight_bits(dtype)) return f(float{});
  f(int64_t{});
}

class Interpreter {
 public:
  Interpreter(const orr_expr& expr, const Tile& tile, Register* r) : e_(expr), tile_(tile), r_(r) {}

  void step(int k) {
    const orr_instr& e = e_.instrs[k];
    Register& to = r_[k];
    switch (e.fn) {
      case ORR_FN_INPUT: return read(tile_.in[e.a], to);
      case ORR_FN_CONST: constant(e, to); break;
      case ORR_FN_CAST: cast(e, to); break;
      case ORR_FN_RAND: random(e, to); break;
      case ORR_FN_ISFINITE: finite(e, to); break;
      case ORR_FN_SELECT: select(e, to); break;
      case ORR_FN_AND: each([&](int l) { to.i[l] = r_[e.a].i[l] & r_[e.b].i[l]; }); break;
      case ORR_FN_OR: each([&](int l) { to.i[l] = r_[e.a].i[l] | r_[e.b].i[l]; }); break;
      case ORR_FN_NOT: each([&](int l) { to.i[l] = !r_[e.a].i[l]; }); break;
      default: arithmetic(e, to);
    }
    narrow(e.dtype, to);
  }

  void store(const TileView& view, Register& from) const {
    with_any(view.dtype, [&]<class T>(Type<T>) {
      T* to = static_cast<T*>(view.data);
      each([&](int l) { put(to[l * view.stride], lanes<Acc<T>>(from)[l]); });
    });
  }

 private:
  template <class F>
  void each(F&& f) const {
    for (int l = 0; l < tile_.n; ++l) f(l);
  }

  void read(const TileView& view, Register& to) const {
    with_any(view.dtype, [&]<class T>(Type<T>) {
      const T* from = static_cast<const T*>(view.data);
      each([&](int l) { lanes<Acc<T>>(to)[l] = get(from[l * view.stride]); });
    });
  }

  void constant(const orr_instr& e, Register& to) const {
    with_accumulator(e.dtype, [&]<class A>(A) {
      A value = e.dtype == ORR_BOOL ? A(e.imm != 0) : convert<A>(e.imm);
      each([&](int l) { lanes<A>(to)[l] = value; });
    });
  }

  void cast(const orr_instr& e, Register& to) const {
    with_accumulator(e_.instrs[e.a].dtype, [&]<class From>(From) {
      const From* x = lanes<From>(r_[e.a]);
      if (e.dtype == ORR_BOOL) return each([&](int l) { to.i[l] = x[l] != From(0); });
      const double limit = e.dtype == ORR_I32 ? 0x1p31 : 0x1p63;
      with_accumulator(e.dtype, [&]<class A>(A) {
        each([&](int l) { lanes<A>(to)[l] = convert<A>(x[l], limit); });
      });
    });
  }

  void random(const orr_instr& e, Register& to) const {
    with_accumulator(e.dtype, [&]<class A>(A) {
      each([&](int l) {
        uint64_t element = uint64_t(r_[e.c].i[l]) + uint64_t(tile_.first + l);
        lanes<A>(to)[l] = A(
            orr_uniform(uint64_t(r_[e.a].i[l]), uint32_t(e.imm), uint32_t(r_[e.b].i[l]), element));
      });
    });
  }

  void finite(const orr_instr& e, Register& to) const {
    with_accumulator(e_.instrs[e.a].dtype, [&]<class A>(A) {
      each([&](int l) { to.i[l] = std::isfinite(double(lanes<A>(r_[e.a])[l])); });
    });
  }

  void select(const orr_instr& e, Register& to) const {
    with_accumulator(e.dtype, [&]<class A>(A) {
      each([&](int l) { lanes<A>(to)[l] = lanes<A>(r_[r_[e.a].i[l] ? e.b : e.c])[l]; });
    });
  }

  void arithmetic(const orr_instr& e, Register& to) const {
    bool compares = e.fn >= ORR_FN_EQ && e.fn <= ORR_FN_GE;
    with_accumulator(compares ? e_.instrs[e.a].dtype : e.dtype, [&]<class A>(A) {
      const A *a = lanes<A>(r_[e.a]), *b = lanes<A>(r_[e.b]), *c = lanes<A>(r_[e.c]);
      if (compares)
        return with_comparison(e.fn,
                               [&](auto f) { each([&](int l) { to.i[l] = f(a[l], b[l]); }); });
      A* y = lanes<A>(to);
      if (e.fn == ORR_FN_FMA) return each([&](int l) { y[l] = multiply_add(a[l], b[l], c[l]); });
      if (e.fn < ORR_FN_NEG)
        return with_binary<A>(e.fn, [&](auto f) { each([&](int l) { y[l] = f(a[l], b[l]); }); });
      with_unary<A>(e.fn, [&](auto f) { each([&](int l) { y[l] = f(a[l]); }); });
    });
  }

  // Rounds (wraps) the register to its dtype.
  void narrow(int32_t dtype, Register& r) const {
    switch (dtype) {
      case ORR_BF16: return each([&](int l) { r.f[l] = bf16_to_f32(f32_to_bf16(r.f[l])); });
      case ORR_F16: return each([&](int l) { r.f[l] = f16_to_f32(f32_to_f16(r.f[l])); });
      case ORR_F8_E4M3: return each([&](int l) { r.f[l] = e4m3_to_f32(f32_to_e4m3(r.f[l])); });
      case ORR_F8_E5M2: return each([&](int l) { r.f[l] = e5m2_to_f32(f32_to_e5m2(r.f[l])); });
      case ORR_I32: return each([&](int l) { r.i[l] = int32_t(r.i[l]); });
      case ORR_U8: return each([&](int l) { r.i[l] = uint8_t(r.i[l]); });
      default: return;
    }
  }

  const orr_expr& e_;
  const Tile& tile_;
  Register* r_;
};

}  // namespace

void evaluate(const orr_expr& expr, const Tile& tile, Register* registers) {
  Interpreter interpreter(expr, tile, registers);
  for (int k = 0; k < expr.n_instrs; ++k) interpreter.step(k);
  for (int j = 0; j < expr.n_outputs; ++j)
    interpreter.store(tile.out[j], registers[expr.outputs[j]]);
}

}  // namespace reference
