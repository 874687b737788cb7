// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_code.h and pointwise_translator.h.
#include "pointwise_code.h"

#include <algorithm>
#include <mutex>

#include "pointwise_translator.h"

namespace orr_cpu::pointwise {

// The first tensors' addresses stay in registers, others are fetched for each use.
void Translator::place_bases() {
  std::vector<Reg64> free = {r15, r14, r13, r12, rbp, rbx, r11};
  const auto place = [&](const Walk& w) {
    if (free.empty()) return;
    const Reg64 r = free.back();
    free.pop_back();
    if (r.getIdx() == rbx.getIdx() || r.getIdx() == rbp.getIdx() || r.getIdx() >= 12)
      push(r), saved.push_back(r);
    mov(r, ptr[slots + w.slot * 8]);
    base[size_t(w.slot)] = r.getIdx();
  };
  for (const Walk& w : code.in) place(w);
  for (const Walk& w : code.out) place(w);
}

void Translator::loop(int block) {
  Xbyak::Label next;
  xor_(index, index);
  if (code.period) xor_(zero, zero);
  align(32);
  L(next);
  mov(index_in_block, index);
  and_(index_in_block, block - 1);
  for (now = 0; now < trace.size(); ++now) translate(trace[now]);
  if (code.period) {
    add(row, 2 * lanes);
    cmp(row, uint32_t(code.period));
    cmove(row, zero);
  }
  add(index, 2 * lanes);
  cmp(index, elements);
  jl(next, T_NEAR);
  for (; !saved.empty(); saved.pop_back()) pop(saved.back());
  vzeroupper();
  mov(eax, 1);
  ret();
}

void Translator::place_constants() {
  align(unsigned(lanes) * 4);
  for (auto& [bits, label] : constants) {
    L(label);
    for (int i = 0; i < lanes / 2; ++i) dq(bits);
  }
}

void Translator::translate(const Node& n) {
  if (!uses[now] && !is_store(n.kind)) return;
  switch (n.kind) {
    case Node::CONSTANT:
    case Node::UNIFORM: return;
    case Node::LOAD:
      if (!waits(now)) in_register(int(now));
      return;
    case Node::UNIFORM_INT:
    case Node::LOAD_U8:
    case Node::LOAD_U16:
    case Node::LOAD_F16: return load_small(n);
    case Node::STORE:
    case Node::STORE_U8:
    case Node::STORE_U16:
    case Node::STORE_F16: return store(n);
    case Node::FMA: return fma(n);
    case Node::SELECT: return select(n);
    case Node::WIDEN_INT:
    case Node::WIDEN_REAL:
    case Node::WIDEN_TO_REAL: return widen(n);
    case Node::NARROW_INT:
    case Node::NARROW_REAL:
    case Node::NARROW_TO_INT:
    case Node::NARROW_LONG: return narrow(n);
    case Node::RANDOM: return random(n);
    default: n.operand[1] < 0 ? unary(n) : binary(n);
  }
}

// What becomes lanes of 4 bytes.
void Translator::load_small(const Node& n) {
  const int r = result();
  for (int h = 0; h < 2; ++h) switch (n.kind) {
      case Node::UNIFORM_INT: vpbroadcastd(reg(r, h), uniform(n.number)); break;
      case Node::LOAD_U8: vpmovzxbd(reg(r, h), element(n.number, 1, h * lanes)); break;
      case Node::LOAD_U16: vpmovzxwd(reg(r, h), element(n.number, 2, h * lanes)); break;
      default: vcvtph2ps(reg(r, h), element(n.number, 2, h * lanes));
    }
}

void Translator::store(const Node& n) {
  const int x = in_register(n.operand[0]);
  if (n.kind == Node::STORE_U8 || (n.kind == Node::STORE_U16 && !wide)) {
    store_bytes(n, x);
  } else {
    for (int h = 0; h < 2; ++h) {
      if (n.wide)
        vmovups(element(n.number, 8, (n.half * 2 + h) * lanes / 2), reg(x, h));
      else if (n.kind == Node::STORE)
        vmovups(element(n.number, 4, h * lanes), reg(x, h));
      else if (n.kind == Node::STORE_F16)
        vcvtps2ph(element(n.number, 2, h * lanes), reg(x, h), 8);
      else
        vpmovdw(element(n.number, 2, h * lanes), reg(x, h));
    }
  }
  used(n);
}
void Translator::store_bytes(const Node& n, int x) {
  if (wide) {
    for (int h = 0; h < 2; ++h) vpmovdb(element(n.number, 1, h * lanes), reg(x, h));
    return;
  }
  const int at = allocate() * 2;
  const Xbyak::Ymm words(at);
  const Xmm low(at), high(at + 1);
  vpackusdw(words, reg(x, 0), reg(x, 1));
  vpermq(words, words, 0xd8);
  if (n.kind == Node::STORE_U16) return vmovdqu(element(n.number, 2, 0), words);
  vextracti128(high, words, 1);
  vpackuswb(low, low, high);
  vmovdqu(element(n.number, 1, 0), low);
}

void Translator::unary(const Node& n) {
  const bool folds = n.kind == Node::SQRT || n.kind == Node::ROUND || n.kind == Node::TO_FLOAT ||
                     n.kind == Node::TO_INT || n.kind == Node::TRUNCATE;
  const int node = n.operand[0], x = folds ? where[size_t(node)] : in_register(node);
  used(n);
  const int to = result();
  halves(node, x, [&](int h, const Operand& from) {
    n.wide ? wide_unary(n, reg(to, h), from) : unary(n, reg(to, h), from);
  });
}
void Translator::unary(const Node& n, const Xmm& to, const Operand& x) {
  const auto from = [&] { return Xmm(to.getKind(), x.getIdx()); };  // not in memory
  const auto number = uint8_t(n.number);
  switch (n.kind) {
    case Node::SQRT: return vsqrtps(to, x);
    case Node::ROUND: return wide ? vrndscaleps(to, x, number) : vroundps(to, x, number);
    case Node::TO_FLOAT: return vcvtdq2ps(to, x);
    case Node::TO_INT: return vcvtps2dq(to, x);
    case Node::TRUNCATE: return vcvttps2dq(to, x);
    case Node::SHIFT_LEFT: return vpslld(to, from(), number);
    case Node::SHIFT_RIGHT: return vpsrld(to, from(), number);
    case Node::SHIFT_RIGHT_SIGNED: return vpsrad(to, from(), number);
    default: {
      const Xmm half(wide ? Operand::YMM : Operand::XMM, to.getIdx());
      vcvtps2ph(half, from(), 8);
      vcvtph2ps(to, half);
    }
  }
}

void Translator::binary(const Node& n) {
  const int a = in_register(n.operand[0]), b = where[size_t(n.operand[1])];
  used(n);
  const int to = result();
  halves(n.operand[1], b, [&](int h, const Operand& last) {
    n.wide ? wide_binary(n, reg(to, h), reg(a, h), last) : binary(n, reg(to, h), reg(a, h), last);
  });
}
void Translator::binary(const Node& n, const Xmm& to, const Xmm& a, const Operand& b) {
  switch (n.kind) {
    case Node::ADD: return vaddps(to, a, b);
    case Node::SUB: return vsubps(to, a, b);
    case Node::MUL: return vmulps(to, a, b);
    case Node::DIV: return vdivps(to, a, b);
    case Node::MIN: return vminps(to, a, b);
    case Node::MAX: return vmaxps(to, a, b);
    case Node::ADD_INT: return vpaddd(to, a, b);
    case Node::SUB_INT: return vpsubd(to, a, b);
    case Node::MUL_INT: return vpmulld(to, a, b);
    case Node::AND: return vandps(to, a, b);
    case Node::OR: return vorps(to, a, b);
    case Node::XOR: return vxorps(to, a, b);
    case Node::GREATER_INT:
      if (!wide) return vpcmpgtd(to, a, b);
      vpcmpgtd(k1, a, b);
      break;
    case Node::EQUAL_INT:
      if (!wide) return vpcmpeqd(to, a, b);
      vpcmpeqd(k1, a, b);
      break;
    default:
      if (!wide) return vcmpps(to, a, b, uint8_t(n.number));
      vcmpps(k1, a, b, uint8_t(n.number));
  }
  vpmovm2d(to, k1);
}

void Translator::select(const Node& n) {
  const int mask = in_register(n.operand[0]), y = in_register(n.operand[2]);
  const int x = where[size_t(n.operand[1])];
  used(n);
  const int to = result();
  halves(n.operand[1], x, [&](int h, const Operand& chosen) {
    const Xmm m = reg(mask, h), other = reg(y, h), into = reg(to, h);
    if (!wide)
      return n.wide ? vblendvpd(into, other, chosen, m) : vblendvps(into, other, chosen, m);
    n.wide ? vpmovq2m(k1, m) : vpmovd2m(k1, m);
    n.wide ? vblendmpd(into | k1, other, chosen) : vblendmps(into | k1, other, chosen);
  });
}

// The result takes the register of an operand that is not needed again, and one operand may come
// from memory.
void Translator::fma(const Node& n) {
  const int32_t* o = n.operand;
  int in = -1, to = -1;  // which operand is the one
  for (int k = 0; k < 3; ++k)
    if (in_memory(o[k])) in = k;
  for (int k = 0; k < 3; ++k)
    if (k != in) in_register(o[k]);
  for (int k = 0; k < 3; ++k) --uses[size_t(o[k])];
  const auto free = [&](int k) { return uses[size_t(o[k])] == 0 || has_home(o[k]); };
  for (int k = 0; k < 3; ++k)
    if (k != in && free(k)) to = k;
  if (to < 0 && in >= 0) in_register(o[to = in]), in = -1;
  int r[3] = {where[size_t(o[0])], where[size_t(o[1])], where[size_t(o[2])]};
  if (to < 0) {
    r[to = 2] = allocate();
    for (int h = 0; h < 2; ++h) vmovaps(reg(r[2], h), reg(where[size_t(o[2])], h));
  } else {
    forget(o[to]);
  }
  hold(int(now), r[to]);
  for (int k = 0; k < 3; ++k)
    if (uses[size_t(o[k])] == 0 && !in_memory(o[k])) forget(o[k]);
  multiply_add(n, r, to, in);
}
// The result in the register of operand number `to`, with number `in` from memory if r has none.
void Translator::multiply_add(const Node& n, const int* r, int to, int in) {
  const int factor = to < 2 ? 1 - to : in == 0 ? 1 : 0;
  const int last = to == 2 ? 1 - factor : in == factor ? factor : 2;
  halves(n.operand[last], r[last], [&](int h, const Operand& x) {
    const Xmm y = reg(r[to], h);
    const bool d = n.wide;
    if (to == 2) {
      const Xmm other = reg(r[factor], h);
      return d ? vfmadd231pd(y, other, x) : vfmadd231ps(y, other, x);
    }
    const Xmm other = reg(r[last == 2 ? factor : 2], h);
    if (last == 2) return d ? vfmadd213pd(y, other, x) : vfmadd213ps(y, other, x);
    d ? vfmadd132pd(y, other, x) : vfmadd132ps(y, other, x);
  });
}

namespace {

// All that the code depends on.
std::vector<int64_t> inputs_of(const Trace& trace, const Compiled& code, int stride,
                               const Isa& isa) {
  std::vector<int64_t> all = {
      code.slots, stride, isa.block, isa.wide, int64_t(code.in.size()), int64_t(code.out.size())};
  all.push_back(code.period);
  for (const Walk& w : code.in) all.insert(all.end(), {w.slot, w.inner == 0, w.again});
  for (const Walk& w : code.out) all.push_back(w.slot);
  for (const Random& r : trace.random) all.insert(all.end(), {r.seed, r.step, r.base, r.id});
  for (const Node& n : trace) {
    all.insert(all.end(), {n.kind, n.wide, n.half, n.operand[0], n.operand[1], n.operand[2]});
    all.push_back(int64_t(n.number));
  }
  return all;
}

// Conversions between int64 and reals, for which AVX2 has no instruction.
bool needs_wide(const Node& n) {
  return n.kind == Node::NARROW_LONG ||
         (n.wide && (n.kind == Node::TO_FLOAT || n.kind == Node::TRUNCATE));
}

}  // namespace

MachineCode translate(const Compiled& code, int stride, const Isa& isa) {
  // A recurrence has the same few expressions in each of its steps.
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, MachineCode> known;
  const Trace notes = trace(code);
  if (notes.empty() || (!isa.wide && std::any_of(notes.begin(), notes.end(), needs_wide)))
    return {};
  const std::lock_guard lock(mutex);
  const std::vector<int64_t> inputs = inputs_of(notes, code, stride, isa);
  if (const auto at = known.find(inputs); at != known.end()) return at->second;
  std::vector<Line> buffer(64 + notes.size() * 4 + notes.random.size() * 64);
  Translator t(buffer, notes, code, stride, isa);
  return known[inputs] = {{t.getCode<const char*>(), t.getSize()}, t.spills * 2 * t.lanes * 4};
}

}  // namespace orr_cpu::pointwise
