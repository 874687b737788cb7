// SPDX-License-Identifier: Apache-2.0
//
// Products with an odd extent, such as those of a head with a vocabulary of 50,257. cuBLASLt is
// fast only where extents are multiples of 16 bytes of elements: on an H200 it took 49 ms for
// 50,257 columns and 7 for 50,256. So such a product is computed with the extent rounded up. Where
// the odd dim lies in the rows of a tensor that are padded (ops.h, matmul), the product reads and
// writes the padding; a tensor that has the odd dim outside is copied, with rows of zeros behind.
#pragma once

#include <optional>

#include "matmul_layout.h"
#include "op.h"

namespace orr_cuda {

class Padding {
 public:
  // Rounds the odd extent of the shape up, that of the rows of its padded tensors. Empty, with the
  // shape as it was, if there is none, or not one alone, or a tensor has no room for it.
  static std::optional<Padding> of(const orr_op& op, MatmulShape& shape);

  uint64_t bytes() const;  // of workspace: the copies
  // Enqueues what comes before the product: copies to `copies`, and zeros for what is summed.
  // Returns where the product is to read and write.
  ProductPlaces before(CUstream stream, const ProductPlaces& at, CUdeviceptr copies) const;
  // Enqueues what comes behind it. `made` is what `before` returned.
  void after(CUstream stream, const ProductPlaces& at, const ProductPlaces& made) const;

 private:
  // One of the three tensors, in the column-major form of Matrix.
  struct Side {
    bool has = false, copied = false;  // the odd dim; it is outside
    uint64_t bytes = 0, more = 0;      // without padding; of the rows behind
    Matrix matrix{};                   // without padding
    uint64_t copy_bytes() const { return copied ? round_up(bytes + more, 256) : 0; }
  };
  bool make_room(Side& side, std::optional<Matrix>& x, bool along_rows, bool padded) const;
  CUdeviceptr read_place(CUstream stream, const Side& side, CUdeviceptr at, CUdeviceptr copy) const;

  Side a_, b_, y_;
  int64_t more_ = 0;     // elements that the extent grows by
  int64_t element_ = 0;  // bytes
  bool summed_ = false;  // the odd dim is K
};

}  // namespace orr_cuda
