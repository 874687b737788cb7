// SPDX-License-Identifier: Apache-2.0
//
// From the samples of a rank to the rows of the whole batch and back (program/ops/batch.cpp), as
// ops of a rank's program. Rows that fill the last microbatch up are no samples.
#pragma once

#include <vector>

#include "partition/localize.h"

namespace orrery {

// Who has which samples. REQUIRES: what it refers to outlives it.
struct DealtSamples {
  int64_t batch;
  const Microbatches& microbatches;
  const std::vector<int64_t>&
      first_microbatch;  // by coordinate on the batch axis, and behind the last
  const Mesh& mesh;

  int64_t in_microbatches(int64_t first, int64_t last) const;
  int64_t here() const { return in_microbatches(microbatches.first, microbatches.last); }
};

// v, known to be a value of samples.
ValueId of_samples(Program& p, ValueId v, int32_t batch_dim = 0);

// The rows of all samples, given those here in x: a value of type `whole`.
ValueId add_batch_gather(Program& p, const DealtSamples& samples, ValueId x, const Type& whole);
// The rows of the samples here, given those of all in y: of type `own`, zeros where it fills up.
ValueId add_batch_slice(Program& p, const DealtSamples& samples, ValueId y, const Type& own);
// Of x, rows of so many microbatches: for each row the sum of its microbatch's.
ValueId add_microbatch_sum(Program& p, ValueId x, int64_t microbatches);
// The numbers of `rows` samples; `first` is the first one's, kNone: that of the rank.
ValueId add_sample_index(Program& p, const DealtSamples& samples, int64_t rows, ValueId first);

// What the op sample_exchange stands for: from x[ranks, dims...], part c of it for coordinate c, to
// [dims...] with the samples of all ranks, one's after another's, along `batch_dim`; or back.
// `together`: those dims, here.
ValueId add_sample_exchange(Program& p, const Op& op, ValueId x, const Dims& together,
                            int32_t batch_dim);
// Samples of several ranks, rank by rank.
std::vector<ValueId> split_samples(Program& p, ValueId x, int32_t batch_dim, int ranks);

// x, of `rows` samples along `batch_dim`, times their weights.
ValueId add_weighed(Program& p, ValueId x, int32_t batch_dim, int64_t rows, ValueId weights);

// x in other dims.
ValueId add_reshape(Program& p, ValueId x, const Dims& dims);
// Elements [begin, begin + n) of a flat value; itself if these are all.
ValueId add_part(Program& p, ValueId flat, int64_t begin, int64_t n);

}  // namespace orrery
