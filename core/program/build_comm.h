// SPDX-License-Identifier: Apache-2.0
//
// Collectives as one writes them: over an axis of the program's mesh, with what they do to shapes
// (ops/comm.cpp has the ops). x varies on the axis (program/varying.h); the results of all_reduce,
// all_gather and broadcast do not. On an axis of one rank each is the identity. All throw Error
// with the current site's prefix.
#pragma once

#include <string>

#include "program/program.h"

namespace orrery::build {

// x as a value of each coordinate's own; x itself if it is that already.
ValueId vary(Program& p, ValueId x, const std::string& axis);
// The coordinate of this rank: i64, varies.
ValueId coordinate(Program& p, const std::string& axis);

// fn: "sum", "mean", "min", "max".
ValueId all_reduce(Program& p, ValueId x, const std::string& axis, const std::string& fn);
// In place of an axis: the samples, over all ranks and microbatches that they are dealt to.
inline constexpr const char* kBatch = "batch";
// [.., d, ..] -> [.., ranks * d, ..] along `dim`, in the order of the coordinates; scalars ->
// [ranks]. Over the batch: all samples' rows as one value that each of them may read, the same rows
// that x stands for; `dim` is theirs.
ValueId all_gather(Program& p, ValueId x, const std::string& axis, int64_t dim);
// [.., ranks * d, ..] -> [.., d, ..]: of the sum this coordinate's share.
ValueId reduce_scatter(Program& p, ValueId x, const std::string& axis, int64_t dim);
// Part c of `split` goes to coordinate c; what comes is joined along `concat`.
ValueId all_to_all(Program& p, ValueId x, const std::string& axis, int64_t split, int64_t concat);
// What coordinate c has goes to (c + hop) modulo the ranks.
ValueId permute(Program& p, ValueId x, const std::string& axis, int64_t hop);
// What coordinate c has goes to to[c]: a permutation of 0, 1, ...
ValueId permute(Program& p, ValueId x, const std::string& axis, const Dims& to);
// What coordinate `root` has.
ValueId broadcast(Program& p, ValueId x, const std::string& axis, int64_t root);

}  // namespace orrery::build
