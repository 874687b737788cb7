// SPDX-License-Identifier: Apache-2.0
//
// What the shape of a matrix product costs: of products with equal FLOPs the one of cubes is the
// fastest.
#pragma once

#include "lower/rank_plan.h"

namespace orrery {

// Of a launch: `count` products [rows, depth] x [depth, columns].
struct ProductShape {
  double count = 0, rows = 0, columns = 0, depth = 0;
  // Elements that are read and written beside those of as many cubes with equal FLOPs.
  double surplus() const;
};

// A count of 0 for a launch that is no product, or an empty one.
ProductShape shape_of(const Launch& launch);

// Results are computed in tiles of rows x columns, as many at a time as there are processors. So
// tiles that reach over the result's border are in vain, and so are processors that have none of
// the last ones. With tiles of half the rows less is in vain, but they run at a part of the speed.
// Tiles may be turned.
struct Tiles {
  double processors = 0, rows = 0, columns = 0, half_speed = 0;
  // The part of the processors' speed that a product reaches at best. It is 1 if each has one tile
  // at most: what libraries do then is in the rates of small products.
  double reached(const ProductShape& shape) const;
};

}  // namespace orrery
