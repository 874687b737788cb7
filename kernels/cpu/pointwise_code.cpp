// SPDX-License-Identifier: Apache-2.0
//
// See pointwise_code.h. A value takes two vector registers, 16 elements with AVX2 and 32 with
// AVX-512: two chains of instructions that the CPU runs side by side.
#include "pointwise_code.h"

#include <xbyak/xbyak.h>

#include <map>
#include <mutex>

namespace orr_cpu::pointwise {
namespace {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

// The alignment of code in the buffer in which it is made. It must be that of the memory in which
// it runs.
struct alignas(64) Line {
  uint8_t bytes[64];
};

struct Translator : Xbyak::CodeGenerator {
  const Trace& trace;
  const Compiled& code;
  const int stride;            // from a slot's block to the next
  const bool wide;             // AVX-512
  const int lanes, registers;  // of a value's half; pairs of them
  std::vector<int> uses;       // of a node, still to come
  std::vector<int> where;      // the pair of registers that holds a node, or -1
  std::vector<int> spill;      // the node's place in memory, or -1
  std::vector<int> holds;      // the node in a pair, or -1
  std::vector<int> base;       // the general register of a tensor's slot, 0: none
  std::vector<char> repeats;   // the tensor's slot is one block all along
  std::map<uint32_t, Xbyak::Label> constants;
  std::vector<Reg64> saved;
  size_t now = 0;  // the node that is being translated
  int spills = 0;

  const Reg64 slots = rdi, scratch = rsi, elements = rdx, index = rcx, index_in_block = r8;

  Translator(std::vector<Line>& buffer, const Trace& trace, const Compiled& code, int stride,
             const Isa& isa)
      : CodeGenerator(buffer.size() * sizeof(Line), buffer.data()),
        trace(trace),
        code(code),
        stride(stride),
        wide(isa.wide),
        lanes(wide ? 16 : 8),
        registers(wide ? 16 : 8),
        uses(trace.size()),
        where(trace.size(), -1),
        spill(trace.size(), -1),
        holds(size_t(registers), -1),
        base(size_t(code.slots)),
        repeats(size_t(code.slots)) {
    for (const Node& n : trace)
      for (int o : n.operand)
        if (o >= 0) ++uses[size_t(o)];
    for (const Walk& w : code.in) repeats[size_t(w.slot)] = w.inner == 0;
    place_bases();
    loop(isa.block);
    place_constants();
  }

  // The first tensors' addresses stay in registers, others are fetched for each use.
  void place_bases() {
    std::vector<Reg64> free = {r15, r14, r13, r12, rbp, rbx, r11, r10, r9};
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

  void loop(int block) {
    Xbyak::Label next;
    xor_(index, index);
    align(32);
    L(next);
    mov(index_in_block, index);
    and_(index_in_block, block - 1);
    for (now = 0; now < trace.size(); ++now) translate(trace[now]);
    add(index, 2 * lanes);
    cmp(index, elements);
    jl(next, T_NEAR);
    for (; !saved.empty(); saved.pop_back()) pop(saved.back());
    vzeroupper();
    ret();
  }

  void place_constants() {
    align(unsigned(lanes) * 4);
    for (auto& [bits, label] : constants) {
      L(label);
      for (int i = 0; i < lanes; ++i) dd(bits);
    }
  }

  // Where things are.
  Xmm reg(int pair, int half) const {
    return Xmm(wide ? Operand::ZMM : Operand::YMM, pair * 2 + half);
  }
  bool in_memory(int node) const { return where[size_t(node)] < 0; }
  bool has_home(int node) const {
    const Node::Kind k = trace[size_t(node)].kind;
    return k == Node::CONSTANT || k == Node::UNIFORM || spill[size_t(node)] >= 0;
  }
  Address element(uint32_t slot, int bytes, int half) {
    const Reg64 at = repeats[slot] ? index_in_block : index;
    Reg64 start = rax;
    if (base[slot])
      start = Reg64(base[slot]);
    else
      mov(rax, ptr[slots + slot * 8]);
    return ptr[start + at * bytes + half * lanes * bytes];
  }
  Address memory(int node, int half) {
    const Node& n = trace[size_t(node)];
    if (spill[size_t(node)] >= 0)
      return ptr[scratch + code.slots * stride + (spill[size_t(node)] * 2 + half) * lanes * 4];
    if (n.kind == Node::CONSTANT) return ptr[rip + constants[n.number]];
    if (n.kind == Node::UNIFORM) return ptr[scratch + n.number * uint32_t(stride)];
    return element(n.number, 4, half);
  }

  // Registers. What the node being translated uses stays.
  bool wanted_now(int node) const {
    const auto& o = trace[now].operand;
    return node == o[0] || node == o[1] || node == o[2];
  }
  size_t next_use(int node) const {
    size_t k = now + 1;
    while (k < trace.size() && trace[k].operand[0] != node && trace[k].operand[1] != node &&
           trace[k].operand[2] != node)
      ++k;
    return k;
  }
  void forget(int node) {
    holds[size_t(where[size_t(node)])] = -1;
    where[size_t(node)] = -1;
  }
  // A free pair; if there is none, that of the value whose next use is farthest away.
  int allocate() {
    int victim = -1;
    size_t farthest = 0;
    for (int r = 0; r < registers; ++r) {
      const int node = holds[size_t(r)];
      if (node < 0) return r;
      if (wanted_now(node) || next_use(node) < farthest) continue;
      victim = node, farthest = next_use(node);
    }
    const int r = where[size_t(victim)];
    if (!has_home(victim)) {
      spill[size_t(victim)] = spills++;
      for (int h = 0; h < 2; ++h) vmovups(memory(victim, h), reg(r, h));
    }
    forget(victim);
    return r;
  }
  void hold(int node, int r) { holds[size_t(r)] = node, where[size_t(node)] = r; }
  int in_register(int node) {
    if (in_memory(node)) {
      const int r = allocate();
      for (int h = 0; h < 2; ++h) vmovups(reg(r, h), memory(node, h));
      hold(node, r);
    }
    return where[size_t(node)];
  }
  // The operands have been read.
  void used(const Node& n) {
    for (int o : n.operand)
      if (o >= 0 && --uses[size_t(o)] == 0 && !in_memory(o)) forget(o);
  }

  // Whether a load may wait for the one instruction that takes it from memory.
  bool waits(size_t node) const {
    if (uses[node] != 1) return false;
    size_t k = now + 1;
    for (; trace[k].operand[0] != int(node) && trace[k].operand[1] != int(node) &&
           trace[k].operand[2] != int(node);
         ++k)
      if (is_store(trace[k].kind)) return false;
    return !is_store(trace[k].kind);
  }
  static bool is_store(Node::Kind k) {
    return k == Node::STORE || k == Node::STORE_U16 || k == Node::STORE_F16;
  }

  // Calls fn(half, operand) for both halves of a node in a register or in memory.
  template <class Fn>
  void halves(int node, int r, Fn&& fn) {
    for (int h = 0; h < 2; ++h)
      if (r >= 0)
        fn(h, reg(r, h));
      else
        fn(h, memory(node, h));
  }
  int result() {
    const int r = allocate();
    hold(int(now), r);
    return r;
  }

  void translate(const Node& n) {
    if (!uses[now] && !is_store(n.kind)) return;
    switch (n.kind) {
      case Node::CONSTANT:
      case Node::UNIFORM: return;
      case Node::LOAD:
        if (!waits(now)) in_register(int(now));
        return;
      case Node::LOAD_U16:
      case Node::LOAD_F16: return load_half(n);
      case Node::STORE:
      case Node::STORE_U16:
      case Node::STORE_F16: return store(n);
      case Node::FMA: return fma(n);
      case Node::SELECT: return select(n);
      default: n.operand[1] < 0 ? unary(n) : binary(n);
    }
  }

  void load_half(const Node& n) {
    const int r = result();
    for (int h = 0; h < 2; ++h)
      n.kind == Node::LOAD_U16 ? vpmovzxwd(reg(r, h), element(n.number, 2, h))
                               : vcvtph2ps(reg(r, h), element(n.number, 2, h));
  }
  void store(const Node& n) {
    const int x = in_register(n.operand[0]);
    if (n.kind == Node::STORE_U16 && !wide) {
      const Xbyak::Ymm packed(allocate() * 2);
      vpackusdw(packed, reg(x, 0), reg(x, 1));
      vpermq(packed, packed, 0xd8);
      vmovdqu(element(n.number, 2, 0), packed);
    } else {
      for (int h = 0; h < 2; ++h) store_half(n, reg(x, h), h);
    }
    used(n);
  }
  void store_half(const Node& n, const Xmm& x, int h) {
    if (n.kind == Node::STORE) return vmovups(element(n.number, 4, h), x);
    if (n.kind == Node::STORE_F16) return vcvtps2ph(element(n.number, 2, h), x, 8);
    vpmovdw(element(n.number, 2, h), x);
  }

  void unary(const Node& n) {
    const bool folds = n.kind == Node::SQRT || n.kind == Node::ROUND || n.kind == Node::TO_FLOAT ||
                       n.kind == Node::TO_INT;
    const int node = n.operand[0], x = folds ? where[size_t(node)] : in_register(node);
    used(n);
    const int to = result();
    halves(node, x, [&](int h, const Operand& from) { unary(n, reg(to, h), from); });
  }
  void unary(const Node& n, const Xmm& to, const Operand& x) {
    const auto from = [&] { return Xmm(to.getKind(), x.getIdx()); };  // not in memory
    const auto number = uint8_t(n.number);
    switch (n.kind) {
      case Node::SQRT: return vsqrtps(to, x);
      case Node::ROUND: return wide ? vrndscaleps(to, x, number) : vroundps(to, x, number);
      case Node::TO_FLOAT: return vcvtdq2ps(to, x);
      case Node::TO_INT: return vcvtps2dq(to, x);
      case Node::SHIFT_LEFT: return vpslld(to, x, number);
      case Node::SHIFT_RIGHT: return vpsrld(to, x, number);
      case Node::SHIFT_RIGHT_SIGNED: return vpsrad(to, x, number);
      default: {
        const Xmm half(wide ? Operand::YMM : Operand::XMM, to.getIdx());
        vcvtps2ph(half, from(), 8);
        vcvtph2ps(to, half);
      }
    }
  }

  void binary(const Node& n) {
    const int a = in_register(n.operand[0]), b = where[size_t(n.operand[1])];
    used(n);
    const int to = result();
    halves(n.operand[1], b,
           [&](int h, const Operand& last) { binary(n, reg(to, h), reg(a, h), last); });
  }
  void binary(const Node& n, const Xmm& to, const Xmm& a, const Operand& b) {
    switch (n.kind) {
      case Node::ADD: return vaddps(to, a, b);
      case Node::SUB: return vsubps(to, a, b);
      case Node::MUL: return vmulps(to, a, b);
      case Node::DIV: return vdivps(to, a, b);
      case Node::MIN: return vminps(to, a, b);
      case Node::MAX: return vmaxps(to, a, b);
      case Node::ADD_INT: return vpaddd(to, a, b);
      case Node::SUB_INT: return vpsubd(to, a, b);
      case Node::AND: return vandps(to, a, b);
      case Node::OR: return vorps(to, a, b);
      case Node::XOR: return vxorps(to, a, b);
      default: break;
    }
    if (!wide) return vcmpps(to, a, b, uint8_t(n.number));
    vcmpps(k1, a, b, uint8_t(n.number));
    vpmovm2d(to, k1);
  }

  void select(const Node& n) {
    const int mask = in_register(n.operand[0]), y = in_register(n.operand[2]);
    const int x = where[size_t(n.operand[1])];
    used(n);
    const int to = result();
    halves(n.operand[1], x, [&](int h, const Operand& chosen) {
      if (!wide) return vblendvps(reg(to, h), reg(y, h), chosen, reg(mask, h));
      vpmovd2m(k1, reg(mask, h));
      vblendmps(reg(to, h) | k1, reg(y, h), chosen);
    });
  }

  // The result takes the register of an operand that is not needed again, and one operand may come
  // from memory.
  void fma(const Node& n) {
    const int* o = n.operand;
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
    multiply_add(o, r, to, in);
  }
  // The result in the register of operand number `to`, with number `in` from memory if r has none.
  void multiply_add(const int* o, const int* r, int to, int in) {
    const int factor = to < 2 ? 1 - to : in == 0 ? 1 : 0;
    const int last = to == 2 ? 1 - factor : in == factor ? factor : 2;
    halves(o[last], r[last], [&](int h, const Operand& x) {
      const Xmm y = reg(r[to], h);
      if (to == 2) return vfmadd231ps(y, reg(r[factor], h), x);
      if (last == 2) return vfmadd213ps(y, reg(r[factor], h), x);
      vfmadd132ps(y, reg(r[2], h), x);
    });
  }
};

// All that the code depends on.
std::vector<int32_t> inputs_of(const Trace& trace, const Compiled& code, int stride,
                               const Isa& isa) {
  std::vector<int32_t> all = {
      code.slots, stride, isa.block, isa.wide, int32_t(code.in.size()), int32_t(code.out.size())};
  for (const Walk& w : code.in) all.insert(all.end(), {w.slot, w.inner == 0});
  for (const Walk& w : code.out) all.push_back(w.slot);
  for (const Node& n : trace) {
    all.insert(all.end(), {n.kind, n.operand[0], n.operand[1], n.operand[2]});
    all.push_back(int32_t(n.number));
  }
  return all;
}

}  // namespace

MachineCode translate(const Compiled& code, int stride, const Isa& isa) {
  // A recurrence has the same few expressions in each of its steps.
  static std::mutex mutex;
  static std::map<std::vector<int32_t>, MachineCode> known;
  const Trace notes = trace(code);
  if (notes.empty()) return {};
  const std::lock_guard lock(mutex);
  const std::vector<int32_t> inputs = inputs_of(notes, code, stride, isa);
  if (const auto at = known.find(inputs); at != known.end()) return at->second;
  std::vector<Line> buffer(64 + notes.size() * 4);
  Translator t(buffer, notes, code, stride, isa);
  return known[inputs] = {{t.getCode<const char*>(), t.getSize()}, t.spills * 2 * t.lanes * 4};
}

}  // namespace orr_cpu::pointwise
