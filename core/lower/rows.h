// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch of which most rows are zero: the gradient of an embedding. Where the tokens
// of all ranks are few beside the table, ranks gather the tokens' rows and each adds them all, in
// the order and the tree of one process, instead of summing whole tables. Rows that are added to
// another gradient, such as that of a tied output layer, are added in its place.
#pragma once

#include "lower/localize.h"
#include "lower/mesh.h"

namespace orrery {

// Before fusion. Programs with a call for each microbatch stay as they are: there a table gathers
// the rows of all microbatches.
void gather_rows(LocalProgram& local, const Mesh& mesh, int rank);

}  // namespace orrery
