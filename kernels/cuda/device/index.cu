// SPDX-License-Identifier: Apache-2.0
//
// Rows and slices at run-time indices: gather, slice_at, update_slice; and iota. Elements are moved
// in the largest units that their addresses allow.
#include "index.h"
#include "kernel.h"

namespace orr_cuda {
namespace {

__device__ int64_t thread_number() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ int64_t thread_count() { return int64_t(gridDim.x) * blockDim.x; }

// a / b, in 32 bits where they suffice: that takes a quarter of the time.
__device__ int64_t quotient(int64_t a, int64_t b) {
  return (uint64_t(a) | uint64_t(b)) >> 32 ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}

template <class Unit>
__device__ void gather(const GatherArgs& a) {
  for (int64_t i = thread_number(); i < a.n * a.units; i += thread_count()) {
    const int64_t row = quotient(i, a.units), unit = i - row * a.units;
    const int64_t index = index_at(a.index, a.wide_index, row);
    if (index >= 0 && index < a.rows)
      static_cast<Unit*>(a.y)[i] = static_cast<const Unit*>(a.table)[index * a.units + unit];
    else if (unit == 0)
      report_late(a.late, row, index);
  }
}

// Whether the slice lies in the dim; the first thread reports one that does not.
__device__ bool checked_at(const SliceArgs& a) {
  const int64_t at = *a.at;
  if (at >= 0 && at <= a.dim - a.length) return true;
  if (thread_number() == 0) report_late(a.late, 0, at);
  return false;
}

template <class Unit>
__device__ void slice_at(const SliceArgs& a) {
  if (!checked_at(a)) return;
  const int64_t slab = a.length * a.units, skipped = *a.at * a.units;
  const Unit* from = static_cast<const Unit*>(a.whole);
  for (int64_t i = thread_number(); i < a.outer * slab; i += thread_count()) {
    const int64_t o = quotient(i, slab);
    static_cast<Unit*>(a.y)[i] = from[i + o * (a.dim - a.length) * a.units + skipped];
  }
}

template <class Unit>
__device__ void update_slice(const SliceArgs& a) {
  if (!checked_at(a)) return;
  const int64_t slab = a.length * a.units, skipped = *a.at * a.units, whole = a.dim * a.units;
  const Unit *part = static_cast<const Unit*>(a.part), *x = static_cast<const Unit*>(a.whole);
  Unit* y = static_cast<Unit*>(a.y);
  if (x == y) {
    for (int64_t i = thread_number(); i < a.outer * slab; i += thread_count())
      y[i + quotient(i, slab) * (whole - slab) + skipped] = part[i];
    return;
  }
  for (int64_t i = thread_number(); i < a.outer * whole; i += thread_count()) {
    const int64_t o = quotient(i, whole), inside = i - o * whole - skipped;
    y[i] = inside >= 0 && inside < slab ? part[o * slab + inside] : x[i];
  }
}

template <class T>
__device__ void iota(const IotaArgs& a) {
  for (int64_t i = thread_number(); i < a.n; i += thread_count())
    static_cast<T*>(a.y)[i] = rounded<T>(Acc<T>(a.start + i));
}

}  // namespace

#define ORR_UNIT_KERNELS(name, Args)                        \
  ORR_KERNEL(name##_1, kIndexThreads, Args, name<uint8_t>)  \
  ORR_KERNEL(name##_2, kIndexThreads, Args, name<uint16_t>) \
  ORR_KERNEL(name##_4, kIndexThreads, Args, name<uint32_t>) \
  ORR_KERNEL(name##_8, kIndexThreads, Args, name<uint2>)    \
  ORR_KERNEL(name##_16, kIndexThreads, Args, name<uint4>)

ORR_UNIT_KERNELS(gather, GatherArgs)
ORR_UNIT_KERNELS(slice_at, SliceArgs)
ORR_UNIT_KERNELS(update_slice, SliceArgs)
ORR_NUMBER_KERNELS(iota, kIndexThreads, IotaArgs)

}  // namespace orr_cuda
