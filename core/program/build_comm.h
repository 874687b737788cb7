// SPDX-License-Identifier: Apache-2.0
//
// Collectives over an axis of the program's mesh, as functions of tensors (ops/comm.cpp has the
// ops). x varies on the axis (program/varying.h); the results of all_reduce, all_gather and
// broadcast do not. On an axis of one rank each is the identity. All throw Error with the current
// site's prefix.
#pragma once

#include <string>

#include "program/program.h"

namespace orrery::build {

// x as a varying value; x itself if it varies already.
ValueId vary(Program& p, ValueId x, const std::string& axis);
// The coordinate of this rank: i64, varies.
ValueId coordinate(Program& p, const std::string& axis);

// fn: "sum", "mean", "min", "max".
ValueId all_reduce(Program& p, ValueId x, const std::string& axis, const std::string& fn);
// May be given in place of an axis: all samples, whatever ranks and microbatches have them.
inline constexpr const char* kBatch = "batch";
// [.., d, ..] -> [.., ranks * d, ..] along `dim`, in the order of the coordinates; scalars ->
// [ranks]. Over kBatch: the rows of all samples, as one value that ops of each sample may read;
// `dim` is the batch dim.
ValueId all_gather(Program& p, ValueId x, const std::string& axis, int64_t dim);
// [.., ranks * d, ..] -> [.., d, ..]: this coordinate's part of the sum.
ValueId reduce_scatter(Program& p, ValueId x, const std::string& axis, int64_t dim);
// Sends part c of dim `split` to coordinate c, and joins the parts that come along `concat`.
ValueId all_to_all(Program& p, ValueId x, const std::string& axis, int64_t split, int64_t concat);
// Sends the x of coordinate c to coordinate (c + hop) modulo the number of ranks.
ValueId permute(Program& p, ValueId x, const std::string& axis, int64_t hop);
// Sends the x of coordinate c to coordinate to[c]; `to` is a permutation of 0, 1, ...
ValueId permute(Program& p, ValueId x, const std::string& axis, const Dims& to);
// The x of coordinate `root`.
ValueId broadcast(Program& p, ValueId x, const std::string& axis, int64_t root);

}  // namespace orrery::build
