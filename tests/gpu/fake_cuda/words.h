// SPDX-License-Identifier: Apache-2.0
//
// Put before a generated source when the fake NVRTC has the host's compiler compile it: the words
// of CUDA that such sources use. Includes nothing, so that it compiles quickly.
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)

struct FakeIndex {
  unsigned x, y, z;
};
// Kernels of several streams run at once.
static __thread FakeIndex threadIdx, blockIdx;

extern "C" {
float expf(float), exp2f(float), logf(float), tanhf(float), erff(float), sinf(float), cosf(float),
    powf(float, float);
float floorf(float), ceilf(float), rintf(float), fabsf(float), sqrtf(float),
    fmaf(float, float, float);
double exp(double), log(double), tanh(double), erf(double), sin(double), cos(double);
double pow(double, double), floor(double), ceil(double), rint(double), fabs(double), sqrt(double);
double fma(double, double, double);
}
// The functions that CUDA has for float under the same name.
inline float exp(float x) { return expf(x); }
inline float log(float x) { return logf(x); }
inline float tanh(float x) { return tanhf(x); }
inline float erf(float x) { return erff(x); }
inline float sin(float x) { return sinf(x); }
inline float cos(float x) { return cosf(x); }
inline float floor(float x) { return floorf(x); }
inline float ceil(float x) { return ceilf(x); }
inline float rint(float x) { return rintf(x); }
inline float fabs(float x) { return fabsf(x); }
inline float sqrt(float x) { return sqrtf(x); }
inline float pow(float a, float b) { return powf(a, b); }
inline float fma(float a, float b, float c) { return fmaf(a, b, c); }

inline float exp2_brief(float x) { return exp2f(x); }
inline float inverse_brief(float x) { return 1 / x; }

inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }

// As the hardware converts, by the compiler's own 16-bit types.
inline float half_to_float(unsigned short bits) { return __builtin_bit_cast(_Float16, bits); }
inline unsigned short float_to_half(float x) {
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(x));
}
inline float round_to_bfloat(float x) {
  const unsigned bits = __float_as_uint(x);
  return __uint_as_float(x != x ? 0x7fff0000 : (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
}

// What fake_cuda/function.h calls a CompiledKernel.
struct FakeKernel {
  int arguments;
  unsigned long sizes[4];
  void (*run)(unsigned, unsigned, void**);
  unsigned long row_words, row_addresses;
  void (*thread)(unsigned, unsigned, void**);
};

#ifdef FAKE_BARRIERS
// What fake_cuda/function.h calls a CompiledBlock.
struct FakeBlock {
  void (*barrier)();
  char* (*memory)();
};
extern "C" __attribute__((visibility("default"))) FakeBlock fake_block;
FakeBlock fake_block;
inline char* block_memory() { return fake_block.memory(); }
inline void __syncthreads() {
  const FakeIndex mine = threadIdx;  // other threads of the block run meanwhile
  fake_block.barrier();
  threadIdx = mine;
}
constexpr bool fake_barriers = true;
#else
constexpr bool fake_barriers = false;
#endif
// Of an argument that is a table.
template <class T>
struct FakeRow {
  static constexpr unsigned long words = 0, addresses = 0;
};
template <class Row>
struct FakeRow<const Row*> {
  static constexpr unsigned long words = sizeof(Row) / 8, addresses = Row::addresses;
};

template <auto kernel>
struct FakeRun;
template <class Args, class Count, void (*kernel)(Args, Count)>
struct FakeRun<kernel> {
  // The last block first: no block may wait for what an earlier one writes.
  static void run(unsigned grid, unsigned block, void** arguments) {
    for (blockIdx.x = grid; blockIdx.x-- > 0;)
      for (threadIdx.x = 0; threadIdx.x < block; ++threadIdx.x)
        kernel(*static_cast<const Args*>(arguments[0]), *static_cast<const Count*>(arguments[1]));
  }
  static void thread(unsigned block, unsigned index, void** arguments) {
    blockIdx.x = block, threadIdx.x = index;
    kernel(*static_cast<const Args*>(arguments[0]), *static_cast<const Count*>(arguments[1]));
  }
  static constexpr FakeKernel value{2,
                                    {sizeof(Args), sizeof(Count)},
                                    run,
                                    FakeRow<Args>::words,
                                    FakeRow<Args>::addresses,
                                    fake_barriers ? thread : nullptr};
};
#define FAKE_KERNEL(name)                                                                \
  extern "C" __attribute__((visibility("default"))) const FakeKernel fake_kernel_##name; \
  const FakeKernel fake_kernel_##name = FakeRun<name>::value;
