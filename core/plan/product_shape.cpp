// SPDX-License-Identifier: Apache-2.0
#include "plan/product_shape.h"

#include <algorithm>
#include <cmath>

namespace orrery {

double ProductShape::surplus() const {
  const double touched = rows * columns + rows * depth + depth * columns;
  return count * (touched - 3 * std::pow(rows * columns * depth, 2.0 / 3));
}

ProductShape shape_of(const Launch& launch) {
  if (launch.cost.flops == 0 || !launch.op.kind.starts_with("matmul")) return {};
  const orr_tensor &in = launch.in.front(), &out = launch.out.front();
  ProductShape shape{1, static_cast<double>(out.dims[1]), static_cast<double>(out.dims[2]), 1};
  shape.count = static_cast<double>(out.dims[0]);
  for (int32_t i = 0; i < in.rank; ++i) shape.depth *= static_cast<double>(in.dims[i]);
  shape.depth /= shape.count * shape.rows;
  return shape;
}

double Tiles::reached(const ProductShape& shape) const {
  double most = 0;
  auto with = [&](double high, double wide, double speed) {
    const double tiles =
        shape.count * std::ceil(shape.rows / high) * std::ceil(shape.columns / wide);
    const double at_work = std::ceil(tiles / processors) * processors * high * wide;
    most = std::max(most, speed * shape.count * shape.rows * shape.columns / at_work);
    return tiles;
  };
  if (std::min(with(rows, columns, 1), with(columns, rows, 1)) <= processors) return 1;
  with(rows / 2, columns, half_speed), with(columns, rows / 2, half_speed);
  return most;
}

}  // namespace orrery
