// SPDX-License-Identifier: Apache-2.0
//
// Runs a compiled pointwise expression block by block: finds or gathers the operands of a block,
// runs the steps, and writes back results that could not be written in place.
#include "float8.h"
#include "pointwise_steps.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {
namespace {

using pointwise::Program;
using pointwise::Step;
using pointwise::Walk;

// Where an element lies and how many follow it, `inner` apart.
struct Place {
  int64_t offset, left;
};
Place find(const Walk& w, int64_t position) {
  int64_t row = position < w.run ? 0 : position / w.run, column = position - row * w.run;
  int64_t offset = column * w.inner;
  for (int d = w.rank - 1; d >= 0 && row; --d) {
    int64_t next = row / w.dims[d];
    offset += (row - next * w.dims[d]) * w.strides[d];
    row = next;
  }
  return {offset, w.run - column};
}

// Calls fn(index in the block, offset, count) for each run of the elements [position, position +
// n).
template <class Fn>
ORR_INLINE void each_run(const Walk& w, int64_t position, int64_t n, Fn&& fn) {
  for (int64_t done = 0; done < n;) {
    Place p = find(w, position + done);
    int64_t count = smaller(p.left, n - done);
    fn(done, p.offset, count);
    done += count;
  }
}

template <class T>
void gather(const Walk& w, const void* from, void* to, int64_t position, int64_t n) {
  const T* x = (const T*)from;
  T* y = (T*)to;
  each_run(w, position, n, [&](int64_t at, int64_t offset, int64_t count) {
    if (w.inner == 1)
      __builtin_memcpy(y + at, x + offset, size_t(count) * sizeof(T));
    else
      for (int64_t i = 0; i < count; ++i) y[at + i] = x[offset + i * w.inner];
  });
  for (int64_t i = n; i < kBlock; ++i) y[i] = T();
}

template <class T>
void scatter(const Walk& w, const void* from, void* to, int64_t position, int64_t n) {
  const T* x = (const T*)from;
  T* y = (T*)to;
  each_run(w, position, n, [&](int64_t at, int64_t offset, int64_t count) {
    if (w.inner == 1)
      __builtin_memcpy(y + offset, x + at, size_t(count) * sizeof(T));
    else
      for (int64_t i = 0; i < count; ++i) y[offset + i * w.inner] = x[at + i];
  });
}

using Mover = void (*)(const Walk&, const void*, void*, int64_t, int64_t);
const Mover kGather[9] = {nullptr, gather<uint8_t>,  gather<uint16_t>,
                          nullptr, gather<uint32_t>, nullptr,
                          nullptr, nullptr,          gather<uint64_t>};
const Mover kScatter[9] = {nullptr, scatter<uint8_t>,  scatter<uint16_t>,
                           nullptr, scatter<uint32_t>, nullptr,
                           nullptr, nullptr,           scatter<uint64_t>};

struct Machine {
  const Program& p;
  void* const* in;
  void* const* out;
  char* scratch;  // one block per slot
  void** slot;
  int64_t* held;  // per varying input: the place that its scratch block repeats, or -1

  void* own(int s) const { return scratch + size_t(s) * size_t(p.stride); }

  void execute(const Step* step, int64_t position) const {
    for (step = run_accumulator(step, slot); step->code != pointwise::END;
         step = run_accumulator(step + 1, slot))
      run_memory(*step, slot, position);
  }

  template <class T>
  void fill(int s, T value) const {
    T* to = (T*)own(s);
    for (int i = 0; i < kBlock; ++i) to[i] = value;
  }

  template <class Round>
  void rounded_fill(const pointwise::Constant& c, Round&& round) const {
    float lanes[kLanes];
    store(lanes, round(splat(float(c.value))));
    fill(c.slot, lanes[0]);
  }

  void constant(const pointwise::Constant& c) const {
    switch (c.dtype) {
      case ORR_F32: return fill(c.slot, float(c.value));
      case ORR_F64: return fill(c.slot, c.value);
      case ORR_BOOL: return fill(c.slot, c.value != 0 ? -1 : 0);
      case ORR_BF16: return fill(c.slot, rounded<bf16>(float(c.value)));
      case ORR_F16: return fill(c.slot, rounded<f16>(float(c.value)));
      case ORR_F8_E4M3: return rounded_fill(c, [](v16f x) { return round_e4m3(x); });
      case ORR_F8_E5M2: return rounded_fill(c, [](v16f x) { return round_e5m2(x); });
      default: return fill(c.slot, int64_t(c.value));
    }
  }

  // An input with one element, in the tensor's own format.
  void uniform(const Walk& w) const {
    const void* from = in[w.tensor];
    switch (w.bytes) {
      case 1: return fill(w.slot, *(const uint8_t*)from);
      case 2: return fill(w.slot, *(const uint16_t*)from);
      case 4: return fill(w.slot, *(const uint32_t*)from);
      default: return fill(w.slot, *(const uint64_t*)from);
    }
  }

  void start() const {
    for (int s = 0; s < p.slots; ++s) slot[s] = own(s);
    for (int i = 0; i < p.constants; ++i) constant(p.constant[i]);
    for (int i = 0; i < p.uniforms; ++i) uniform(p.uniform[i]);
    execute(p.prologue, 0);
    for (int i = 0; i < p.inputs; ++i) held[i] = -1;
  }

  // Points the slot of input i at its block, in place when the block is whole and contiguous.
  // Returns how many blocks from here on lie like that one after another, or repeat one place.
  int64_t fetch(int i, int64_t position, int64_t n) const {
    const Walk& w = p.in[i];
    char* base = (char*)in[w.tensor];
    Place at = find(w, position);
    bool whole = n == kBlock && at.left >= n;
    if (whole && w.inner == 1) {
      slot[w.slot] = base + at.offset * w.bytes;
      return at.left / kBlock;
    }
    bool repeats = whole && w.inner == 0;
    slot[w.slot] = own(w.slot);
    if (!repeats || held[i] != at.offset) kGather[w.bytes](w, base, slot[w.slot], position, n);
    held[i] = repeats ? at.offset : -1;
    return repeats ? at.left / kBlock : 1;
  }

  // The same for input i of the machine code, which repeats rows by itself.
  int64_t fetch_for_code(int i, int64_t position, int64_t n) const {
    const Walk& w = p.in[i];
    if (!w.again) return fetch(i, position, n);
    slot[w.slot] = in[w.tensor];
    return INT64_MAX;
  }

  // The same for output i.
  int64_t aim(int i, int64_t position, int64_t n) const {
    const Walk& w = p.out[i];
    Place at = find(w, position);
    bool direct = n == kBlock && at.left >= n && w.inner == 1;
    slot[w.slot] = direct ? (char*)out[w.tensor] + at.offset * w.bytes : (char*)own(w.slot);
    return direct ? at.left / kBlock : 1;
  }

  // Ahead of the steps, which fill the CPU's window so that it does not see that far by itself. Two
  // blocks were measured to be best.
  static void prefetch(const char* next, int bytes) {
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
  }

  // From a block to the next where all blocks are in place, or repeat one.
  void advance() const {
    for (int i = 0; i < p.inputs; ++i) {
      const Walk& w = p.in[i];
      slot[w.slot] = (char*)slot[w.slot] + w.inner * w.bytes * kBlock;
      if (w.flat) prefetch((const char*)slot[w.slot] + 2 * kBlock * w.bytes, kBlock * w.bytes);
    }
    for (int i = 0; i < p.outputs; ++i) {
      const Walk& w = p.out[i];
      slot[w.slot] = (char*)slot[w.slot] + w.bytes * kBlock;
    }
  }

  void interpret(int64_t position, int64_t blocks) const {
    execute(p.body, position);
    for (int64_t b = 1; b < blocks; ++b) {
      advance();
      execute(p.body, position + b * kBlock);
    }
  }

  // Runs the machine code on at most `blocks` blocks, and sets that to how many they were. Returns
  // whether there is any that can run here.
  bool run_code(int64_t position, int64_t n, int64_t& blocks) const {
    if (!p.body_code) return false;
    int64_t most = blocks;
    for (int i = 0; i < p.inputs; ++i) most = smaller(most, fetch_for_code(i, position, n));
    const int64_t row = p.period ? position % p.period : 0;
    if (!p.body_code(slot, scratch, most * kBlock, position, row)) return false;
    blocks = most;
    return true;
  }

  // Runs the blocks from `position` on that follow each other without a gap in every tensor, or
  // one, of fewer elements at the end. Returns where the next begins.
  int64_t stretch(int64_t position, int64_t last) const {
    const int64_t n = smaller(kBlock, last - position);
    int64_t blocks = larger(1, (last - position) / kBlock);
    for (int i = 0; i < p.outputs; ++i) blocks = smaller(blocks, aim(i, position, n));
    if (!run_code(position, n, blocks)) {
      for (int i = 0; i < p.inputs; ++i) blocks = smaller(blocks, fetch(i, position, n));
      interpret(position, blocks);
    }
    for (int i = 0; i < p.outputs; ++i) {
      const Walk& w = p.out[i];
      if (slot[w.slot] == own(w.slot))
        kScatter[w.bytes](w, slot[w.slot], out[w.tensor], position, n);
    }
    return position + (blocks - 1) * kBlock + n;
  }
};

void run(const Program& p, void* const* in, void* const* out, int64_t first, int64_t last) {
  size_t bytes = size_t(p.slots) * size_t(p.stride) + size_t(p.spill_bytes);
  char* scratch = (char*)__builtin_alloca_with_align(bytes, 64 * 8);
  void* slot[pointwise::kMaxSlots];
  int64_t held[pointwise::kMaxTensors];
  Machine m{p, in, out, scratch, slot, held};
  m.start();
  while (first < last) first = m.stretch(first, last);
}

}  // namespace

Kernel* make_pointwise(const orr_op& op) {
#ifdef __AVX512F__
  const bool wide = true;
#else
  const bool wide = false;
#endif
  return pointwise::make(op, {run, kBlock, wide});
}

}  // namespace orr_cpu::ORR_ISA
