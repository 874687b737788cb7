// SPDX-License-Identifier: Apache-2.0
//
// What ids stand around those of a text, such as those of begin and end.
#pragma once

#include <optional>
#include <vector>

#include "part.h"

namespace data {

// Ids, and nothing where those of the text go.
using Template = std::vector<std::optional<int32_t>>;

// The templates that a post-processor applies, one after the other. REQUIRES: ids are below `ids`.
std::vector<Template> make_templates(Part part, int64_t ids, int depth = 0);

std::vector<int32_t> with_template(const Template& around, const std::vector<int32_t>& ids);

}  // namespace data
