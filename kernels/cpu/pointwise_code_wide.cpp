// SPDX-License-Identifier: Apache-2.0
//
// Instructions on lanes of 8 bytes, and between them and lanes of 4 (pointwise_translator.h).
#include "pointwise_translator.h"

namespace orr_cpu::pointwise {

using Xbyak::Ymm;
using Xbyak::Zmm;

void Translator::wide_unary(const Node& n, const Xmm& to, const Operand& x) {
  const auto from = [&] { return Xmm(to.getKind(), x.getIdx()); };  // not in memory
  const auto number = uint8_t(n.number);
  switch (n.kind) {
    case Node::SQRT: return vsqrtpd(to, x);
    case Node::ROUND: return wide ? vrndscalepd(to, x, number) : vroundpd(to, x, number);
    case Node::TO_FLOAT: return vcvtqq2pd(to, x);
    case Node::TRUNCATE: return vcvttpd2qq(to, x);
    case Node::SHIFT_LEFT: return vpsllq(to, from(), number);
    default: return vpsrlq(to, from(), number);
  }
}

void Translator::wide_binary(const Node& n, const Xmm& to, const Xmm& a, const Operand& b) {
  switch (n.kind) {
    case Node::ADD: return vaddpd(to, a, b);
    case Node::SUB: return vsubpd(to, a, b);
    case Node::MUL: return vmulpd(to, a, b);
    case Node::DIV: return vdivpd(to, a, b);
    case Node::MIN: return vminpd(to, a, b);
    case Node::MAX: return vmaxpd(to, a, b);
    case Node::ADD_INT: return vpaddq(to, a, b);
    case Node::SUB_INT: return vpsubq(to, a, b);
    case Node::MUL_WORDS: return vpmuludq(to, a, b);
    case Node::AND: return vandpd(to, a, b);
    case Node::OR: return vorpd(to, a, b);
    case Node::XOR: return vxorpd(to, a, b);
    case Node::GREATER_INT:
      if (!wide) return vpcmpgtq(to, a, b);
      vpcmpgtq(k1, a, b);
      break;
    case Node::EQUAL_INT:
      if (!wide) return vpcmpeqq(to, a, b);
      vpcmpeqq(k1, a, b);
      break;
    default:
      if (!wide) return vcmppd(to, a, b, uint8_t(n.number));
      vcmppd(k1, a, b, uint8_t(n.number));
  }
  vpmovm2q(to, k1);
}

// Half number `half` of the operand, to lanes twice as wide. The operand keeps its registers until
// both are made.
void Translator::widen(const Node& n) {
  const int x = in_register(n.operand[0]), to = result();
  const int from = reg(x, n.half).getIdx();
  for (int h = 0; h < 2; ++h) {
    const Xmm into = reg(to, h);
    Xmm part(wide ? Operand::YMM : Operand::XMM, h ? into.getIdx() : from);
    if (h)
      wide ? vextracti64x4(Ymm(part.getIdx()), Zmm(from), 1) : vextracti128(part, Ymm(from), 1);
    if (n.kind == Node::WIDEN_INT)
      vpmovsxdq(into, part);
    else if (n.kind == Node::WIDEN_REAL)
      vcvtps2pd(into, part);
    else
      vcvtdq2pd(into, part);
  }
  used(n);
}

// Two nodes of wide lanes to one.
void Translator::narrow(const Node& n) {
  const int x[2] = {in_register(n.operand[0]), in_register(n.operand[1])};
  const int to = result(), spare = borrow();
  for (int h = 0; h < 2; ++h) {
    const Xmm into = reg(to, h);
    if (!wide && n.kind == Node::NARROW_INT) {
      vshufps(into, reg(x[h], 0), reg(x[h], 1), 0x88);
      vpermq(Ymm(into.getIdx()), Ymm(into.getIdx()), 0xd8);
      continue;
    }
    narrow(n, into, reg(x[h], 0));
    narrow(n, reg(spare, 0), reg(x[h], 1));
    const int upper = reg(spare, 0).getIdx(), all = into.getIdx();
    if (wide)
      vinserti64x4(Zmm(all), Zmm(all), Ymm(upper), 1);
    else
      vinserti128(Ymm(all), Ymm(all), Xmm(upper), 1);
  }
  give_back(spare);
  used(n);
}
// x, to the lower half of `to`.
void Translator::narrow(const Node& n, const Xmm& to, const Xmm& x) {
  const Xmm half(wide ? Operand::YMM : Operand::XMM, to.getIdx());
  switch (n.kind) {
    case Node::NARROW_INT: return vpmovqd(half, x);
    case Node::NARROW_REAL: return vcvtpd2ps(half, x);
    case Node::NARROW_TO_INT: return vcvttpd2dq(half, x);
    default: return vcvtqq2ps(half, x);
  }
}

}  // namespace orr_cpu::pointwise
