// SPDX-License-Identifier: Apache-2.0
//
// Tiles of matrices in shared memory for products. Rows of 128 bytes, whose packets of 16 bytes are
// permuted by the row (packet p of row r lies at p ^ r % 8), so that those of one column in eight
// rows are in different banks. Wider rows are several such tiles, one behind the other.
#pragma once

#include "mma.h"

namespace orr_cuda {

template <class T, int rows_, int columns_>
struct ProductTile {
  static constexpr unsigned size = sizeof(T);
  static constexpr int rows = rows_, columns = columns_;
  static constexpr int packet = 16 / int(size), block = 128 / int(size);  // columns
  static constexpr int bytes = rows * columns * int(size);
  char* at;

  // Bytes from the beginning to an element.
  static __device__ unsigned offset(unsigned r, unsigned c) {
    return c / block * (rows * 128) + r * 128 + (c % block * size ^ (r & 7) * 16);
  }
  // From one whose column has none of the bits of c, c columns to the right.
  static __device__ unsigned beside(unsigned offset, unsigned c) {
    return (offset ^ c % block * size) + c / block * (rows * 128);
  }
  __device__ T* place(int r, int c) const { return from(offset(unsigned(r), unsigned(c))); }
  __device__ T* from(unsigned offset) const { return reinterpret_cast<T*>(at + offset); }
};

// An operand of a product, of which K lies along the rows, or else across them; `extent` of its
// rows or columns are those of the product. A warp has those from `own` on; what it takes of them
// and of K is known to the compiler, so that addresses differ by constants.
template <class T, bool k_along, int extent>
struct OperandTile : ProductTile<T, k_along ? extent : 128 / int(sizeof(T)),
                                 k_along ? 128 / int(sizeof(T)) : extent> {
  static constexpr int depth = 128 / int(sizeof(T));  // of K
  static constexpr int step = 32 / int(sizeof(T));    // of K, in a product of tensor cores
  static constexpr bool k_is_along = k_along;
  using Base = ProductTile<T, k_along ? extent : depth, k_along ? depth : extent>;
  using Base::beside, Base::from, Base::offset, Base::packet;

  // The rows [own + r, own + r + 16) with `step` of K from k on, as the left operand of mma.h.
  __device__ OperandA left(unsigned own, int r, int k) const {
    const unsigned lane = threadIdx.x % 32;
    OperandA x;
    if constexpr (k_along)
      load_matrices(x.x, from(beside(offset(own + r + lane % 16, lane / 16 * packet), k)));
    else if constexpr (sizeof(T) == 2)
      load_transposed(
          x.x, from(beside(offset(lane / 16 * 8 + lane % 8, own + lane / 8 % 2 * 8), r)) + k * 64);
    else
      for (int i = 0; i < 4; ++i) x.x[i] = word(own, r + i % 2 * 8, k + i / 2 * 4);
    return x;
  }

  // Two right operands, of the columns [own + c, own + c + 16).
  __device__ void right(unsigned own, int c, int k, OperandB (&b)[2]) const {
    const unsigned lane = threadIdx.x % 32;
    uint32_t x[4];
    if constexpr (k_along)
      load_matrices(
          x, from(beside(offset(own + c + lane % 8 + lane / 16 * 8, lane / 8 % 2 * packet), k)));
    else if constexpr (sizeof(T) == 2)
      load_transposed(x, from(beside(offset(lane % 16, own + lane / 16 * 8), c)) + k * 64);
    else
      for (int i = 0; i < 4; ++i) x[i] = word(own, c + i / 2 * 8, k + i % 2 * 4);
    b[0] = {{x[0], x[1]}}, b[1] = {{x[2], x[3]}};
  }

 private:
  // This lane's element of a product with TF32: one of four of K from k on, one of eight from i on.
  __device__ uint32_t word(unsigned own, int i, int k) const {
    const unsigned lane = threadIdx.x % 32;
    const unsigned at = offset(lane % 4 + k % 8, own + lane / 4);
    return *reinterpret_cast<const uint32_t*>(from(beside(at, i)) + k / 8 * 8 * 32);
  }
};

}  // namespace orr_cuda
