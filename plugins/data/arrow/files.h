// SPDX-License-Identifier: Apache-2.0
//
// Which files of Parquet or Arrow a path stands for: itself, or those of a directory, such as
// Hugging Face's datasets saves.
#pragma once

#include <string>
#include <vector>

namespace data {

// `split` is "" if the script names none. Throws Error for a directory without such files, with
// several splits of which none is named, or of which a part is missing.
std::vector<std::string> column_files(const std::string& path, const std::string& split);

}  // namespace data
