// SPDX-License-Identifier: Apache-2.0
//
// Pointwise expressions on a tile of elements: one array per instruction, all instructions in
// order.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <cstdint>

namespace reference {

enum { kTileElements = 256 };

// The values of one instruction. f32 and 16-bit reals live in f, f64 in d, integers and BOOL in i.
union Register {
  float f[kTileElements];
  double d[kTileElements];
  int64_t i[kTileElements];
};

// The part of a tensor that a tile covers.
struct TileView {
  void* data;
  int64_t stride;  // in elements
  int32_t dtype;
};

struct Tile {
  const TileView* in;
  const TileView* out;
  int64_t first;  // row-major index of the first element in the output
  int n;          // elements, at most kTileElements
};

// Computes every register of the tile, then stores the outputs.
void evaluate(const orr_expr& expr, const Tile& tile, Register* registers);

}  // namespace reference
