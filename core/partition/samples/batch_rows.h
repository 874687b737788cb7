// SPDX-License-Identifier: Apache-2.0
//
// Ops of a rank's program that gather the rank's samples to the rows of the whole batch, and take
// them back (program/ops/batch.cpp). Rows that pad the last microbatch are not samples.
#pragma once

#include <vector>

#include "partition/localize.h"

namespace orrery {

// Which rows of the batch each rank has. REQUIRES: what it refers to outlives it.
struct BatchRows {
  int64_t batch;
  const Microbatches& microbatches;
  // By coordinate on the batch axis; one more entry is the end of the last one's.
  const std::vector<int64_t>& first_microbatch;
  const Mesh& mesh;

  // How many samples are in the microbatches [first, last); on this rank.
  int64_t in_microbatches(int64_t first, int64_t last) const;
  int64_t here() const { return in_microbatches(microbatches.first, microbatches.last); }
};

// Marks v as a value of samples; returns v.
ValueId of_samples(Program& p, ValueId v, int32_t batch_dim = 0);

// Gathers the rows x of this rank's samples to the rows of all samples, of type `whole`.
ValueId add_batch_gather(Program& p, const BatchRows& samples, ValueId x, const Type& whole);
// Takes the rows of this rank's samples from those of all, y. The result has the type `own`, with
// zeros in the rows that pad.
ValueId add_batch_slice(Program& p, const BatchRows& samples, ValueId y, const Type& own);
// Has every row of x replaced by the sum of its microbatch's rows, or by the largest (`fn`); x has
// so many microbatches.
ValueId add_microbatch_sum(Program& p, ValueId x, int64_t microbatches, const std::string& fn);
// The indices in the batch of `rows` samples that begin at index `first`; kNone: at the rank's
// first sample.
ValueId add_sample_index(Program& p, const BatchRows& samples, int64_t rows, ValueId first);

// The all_to_all of the op sample_exchange: of x[ranks, dims...], part c goes to coordinate c,
// which gets [dims...] with the samples of all ranks, rank after rank, along `batch_dim`. Or the
// way back. `together`: the dims of the value that has the samples of all ranks.
ValueId add_sample_exchange(Program& p, const Op& op, ValueId x, const Dims& together,
                            int32_t batch_dim);
// Splits samples of several ranks into one value for each rank.
std::vector<ValueId> split_samples(Program& p, ValueId x, int32_t batch_dim, int ranks);

// Which input of an op that sums over samples is to be multiplied by their weights: of
// norm_param_grad the cotangent, its first one; of others the last real one that has samples, since
// reduce, matmul, scatter_add and scatter_matmul add multiples (or squares) of its rows; of sums of
// integers the last one. REQUIRES: one has samples.
size_t weighed_input(const Program& p, const Op& op);
// x, which has `rows` samples along `batch_dim`, times their weights.
ValueId add_weighed(Program& p, ValueId x, int32_t batch_dim, int64_t rows, ValueId weights);

ValueId add_reshape(Program& p, ValueId x, const Dims& dims);
// Elements [begin, begin + n) of a flat value; the value itself if these are all.
ValueId add_part(Program& p, ValueId flat, int64_t begin, int64_t n);

}  // namespace orrery
