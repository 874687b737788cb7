// SPDX-License-Identifier: Apache-2.0
//
// Makes the machine code of a trace: where values are (this file's functions), the loop and
// instructions on lanes of 4 bytes (pointwise_code.cpp), those on lanes of 8 bytes and between the
// two (pointwise_code_wide.cpp), random numbers (pointwise_code_random.cpp).
//
// A node takes two vector registers. They hold 16 elements of 4 bytes with AVX2 and 32 with
// AVX-512: two chains of instructions that the CPU runs side by side. Elements of 8 bytes take two
// nodes, so that a node has as many bytes as any other.
#pragma once

#include <xbyak/xbyak.h>

#include <map>
#include <vector>

#include "pointwise_trace.h"

namespace orr_cpu::pointwise {

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
  const int stride;                            // from a slot's block to the next
  const bool wide;                             // AVX-512
  const int lanes, registers;                  // of a value's half; pairs of them
  std::vector<int> uses;                       // of a node, still to come
  std::vector<int> where;                      // the pair of registers that holds a node, or -1
  std::vector<int> spill;                      // the node's place in memory, or -1
  std::vector<int> holds;                      // the node in a pair, or -1
  std::vector<int> base;                       // the general register of a tensor's slot, 0: none
  std::vector<char> repeats;                   // the tensor's slot is one block all along
  std::vector<char> again;                     // or one row (Walk::again)
  std::map<uint64_t, Xbyak::Label> constants;  // of 8 bytes
  Xbyak::Label counters;                       // of random numbers
  std::vector<int> random_home;                // their places in memory
  std::vector<Reg64> saved;
  size_t now = 0;  // the node that is being translated
  int spills = 0;

  const Reg64 slots = rdi, scratch = rsi, elements = rdx, position = rcx, index = rcx, row = r8,
              index_in_block = r9, zero = r10;

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
        repeats(size_t(code.slots)),
        again(size_t(code.slots)) {
    for (const Node& n : trace)
      for (int o : n.operand)
        if (o >= 0) ++uses[size_t(o)];
    for (const Walk& w : code.in)
      repeats[size_t(w.slot)] = w.inner == 0, again[size_t(w.slot)] = w.again;
    begin_random();
    place_bases();
    loop(isa.block);
    place_constants();
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
  // Element number `at` of the turn, of a tensor with elements of that many bytes.
  Address element(uint64_t slot, int bytes, int at) {
    const Reg64 turn = repeats[slot] ? index_in_block : again[slot] ? row : index;
    Reg64 start = rax;
    if (base[slot])
      start = Reg64(base[slot]);
    else
      mov(rax, ptr[slots + slot * 8]);
    return ptr[start + turn * bytes + at * bytes];
  }
  Address uniform(uint64_t slot) const { return ptr[scratch + slot * uint64_t(stride)]; }
  // Place number `at` behind the blocks, which holds a node.
  Address behind(int at, int half) const {
    return ptr[scratch + code.slots * stride + (at * 2 + half) * lanes * 4];
  }
  Address constant(uint64_t bits) { return ptr[rip + constants[bits]]; }
  Address constant_of_4(uint32_t bits) { return constant(bits | uint64_t(bits) << 32); }
  Address memory(int node, int half) {
    const Node& n = trace[size_t(node)];
    if (spill[size_t(node)] >= 0) return behind(spill[size_t(node)], half);
    if (n.kind == Node::CONSTANT)
      return n.wide ? constant(n.number) : constant_of_4(uint32_t(n.number));
    if (n.kind == Node::UNIFORM) return uniform(n.number);
    if (n.wide) return element(n.number, 8, (n.half * 2 + half) * lanes / 2);
    return element(n.number, 4, half * lanes);
  }

  // Registers. What the node being translated uses stays.
  bool wanted_now(int node) const {
    const auto& o = trace[now].operand;
    return node == int(now) || node == o[0] || node == o[1] || node == o[2];
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
  static bool is_store(Node::Kind k) { return k >= Node::STORE && k <= Node::STORE_F16; }

  // Calls fn(half, operand) for both halves of a node in a register or in memory.
  template <class Fn>
  void halves(int node, int r, Fn&& fn) {
    for (int h = 0; h < 2; ++h)
      if (r >= 0)
        fn(h, reg(r, h));
      else
        fn(h, memory(node, h));
  }
  // A pair for use within one node, until give_back().
  int borrow() {
    const int r = allocate();
    holds[size_t(r)] = int(now);
    return r;
  }
  void give_back(int r) { holds[size_t(r)] = -1; }
  int result() {
    const int r = allocate();
    hold(int(now), r);
    return r;
  }

  void begin_random();
  void place_bases();
  void loop(int block);
  void place_constants();

  void translate(const Node& n);
  void load_small(const Node& n);
  void store(const Node& n);
  void store_bytes(const Node& n, int x);
  void unary(const Node& n);
  void unary(const Node& n, const Xmm& to, const Operand& x);
  void binary(const Node& n);
  void binary(const Node& n, const Xmm& to, const Xmm& a, const Operand& b);
  void mask(bool of_8, const Xmm& to);
  void select(const Node& n);
  void fma(const Node& n);
  void multiply_add(const Node& n, const int* r, int to, int in);

  void wide_unary(const Node& n, const Xmm& to, const Operand& x);
  void wide_binary(const Node& n, const Xmm& to, const Xmm& a, const Operand& b);
  void widen(const Node& n);
  void narrow(const Node& n);
  void narrow(const Node& n, const Xmm& to, const Xmm& x);

  void random(const Node& n);
  void rounds(int home, Xmm (&c)[4], Xmm p0, Xmm p1);
};

}  // namespace orr_cpu::pointwise
