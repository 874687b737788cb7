// SPDX-License-Identifier: Apache-2.0
//
// Datasets that plugins read (orrery/data.h).
#pragma once

#include <map>

#include "data/dataset.h"

namespace orrery {

// What the data plugin `format` reads at a path; `dtypes` of fields, instead of those that it gives
// them. Throws Error for an option that it does not ask for, and for a field that is not there.
// [main thread]
DatasetPtr open_data(const std::string& format, const std::string& path, const Attrs& options,
                     const std::map<std::string, int32_t>& dtypes);

}  // namespace orrery
