// SPDX-License-Identifier: Apache-2.0
//
// Random numbers in machine code (pointwise_translator.h): Philox 4x32-10 (ops.h). Each lane of 8
// bytes has one counter, whose four words are four neighbouring elements; what is in the upper
// halves of the lanes does not matter. Behind the blocks lie, for each id, the keys of the ten
// rounds and then the counters of the turn.
#include "pointwise_translator.h"

namespace orr_cpu::pointwise {
namespace {

constexpr int kRounds = 10;

}  // namespace

// Before the loop: keys and first counters. The code gives up, and returns 0, if the elements do
// not begin with the first word of a counter.
void Translator::begin_random() {
  if (trace.random.empty()) return;
  Xbyak::Label refuse, begin;
  const Xmm a = reg(0, 0), b = reg(0, 1);
  for (const Random& r : trace.random) {
    random_home.push_back(spills);
    vmovups(a, uniform(uint64_t(r.seed)));
    vpsrlq(b, a, 32);
    for (int round = 0; round < kRounds; ++round) {
      vmovups(behind(spills + round, 0), a);
      vmovups(behind(spills + round, 1), b);
      vpaddd(a, a, constant_of_4(0x9E3779B9u));
      vpaddd(b, b, constant_of_4(0xBB67AE85u));
    }
    mov(rax, uniform(uint64_t(r.base)));
    add(rax, position);
    test(rax, 3);
    jnz(refuse, T_NEAR);
    shr(rax, 2);
    vmovq(Xmm(a.getIdx()), rax);
    vpbroadcastq(a, Xmm(a.getIdx()));
    vpaddq(a, a, ptr[rip + counters]);
    vmovups(behind(spills + kRounds, 0), a);
    spills += kRounds + 1;
  }
  jmp(begin, T_NEAR);
  L(refuse);
  xor_(eax, eax);
  vzeroupper();
  ret();
  // Of the lanes, in the order in which random() gives their elements back in order.
  align(64);
  L(counters);
  for (int i = 0; i < lanes / 2; ++i) dq(uint64_t(i / 2 + i % 2 * (lanes / 4)));
  L(begin);
}

// c becomes the four words of its lanes' counters.
void Translator::rounds(int home, Xmm (&c)[4], Xmm p0, Xmm p1) {
  const auto add_key = [&](const Xmm& x, const Xmm& y, const Address& key) {
    if (wide) return vpternlogq(x, y, key, 0x96);  // x ^ y ^ key
    vpxor(x, x, y);
    vpxor(x, x, key);
  };
  for (int round = 0; round < kRounds; ++round) {
    vpmuludq(p0, c[0], constant_of_4(0xD2511F53u));
    vpmuludq(p1, c[2], constant_of_4(0xCD9E8D57u));
    vpsrlq(c[0], p1, 32);
    vpsrlq(c[2], p0, 32);
    add_key(c[0], c[1], behind(home + round, 0));
    add_key(c[2], c[3], behind(home + round, 1));
    std::swap(c[1], p1);
    std::swap(c[3], p0);
  }
}

void Translator::random(const Node& n) {
  const Random& r = trace.random[n.number];
  const int home = random_home[n.number], to = result(), one = borrow(), other = borrow();
  Xmm c[4] = {reg(to, 0), reg(one, 0), reg(to, 1), reg(one, 1)};
  const Xmm p0 = reg(other, 0), p1 = reg(other, 1);
  vmovups(c[0], behind(home + kRounds, 0));
  vpaddq(p0, c[0], constant(uint64_t(lanes / 2)));  // the next turn's
  vmovups(behind(home + kRounds, 0), p0);
  vpsrlq(c[1], c[0], 32);
  vmovups(c[2], constant_of_4(r.id));
  vmovups(c[3], uniform(uint64_t(r.step)));
  rounds(home, c, p0, p1);
  // From four words in each lane to elements in order. kRounds is even: c has its registers again.
  vshufps(p0, c[0], c[1], 0x88);
  vshufps(p1, c[2], c[3], 0x88);
  vshufps(reg(to, 0), p0, p1, 0x88);
  vshufps(reg(to, 1), p0, p1, 0xdd);
  give_back(one);
  give_back(other);
}

}  // namespace orr_cpu::pointwise
