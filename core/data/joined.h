// SPDX-License-Identifier: Apache-2.0
//
// Several datasets as one.
#pragma once

#include "data/dataset.h"

namespace orrery {

// Beside each other: samples with the fields of all. Throws Error if their numbers of samples
// differ. REQUIRES: no name of a field occurs twice.
DatasetPtr beside(const std::vector<DatasetPtr>& parts);

// One after another. Throws Error if their fields differ; `names` is what it calls them.
DatasetPtr join(const std::vector<DatasetPtr>& parts, const std::vector<std::string>& names);

// The same, but part k fills lengths[k] places, from its first sample on and again.
DatasetPtr mix(const std::vector<DatasetPtr>& parts, const std::vector<int64_t>& lengths);

}  // namespace orrery
