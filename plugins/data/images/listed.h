// SPDX-License-Identifier: Apache-2.0
//
// The images that a column of a table in CSV names, and other columns of it.
#pragma once

#include "../csv_fields.h"

namespace data {

struct ImageList {
  std::string column;
  std::string folder;  // that names are in
  std::string ending;  // that names lack
};

struct ListedImages {
  std::vector<std::string> paths;  // in the order of the rows
  std::unique_ptr<Rows> columns;   // the fields that are asked for
};

// Throws Error, which names the line, for an empty name, and where the first file is missing, as
// all are where `folder` or `ending` is wrong.
ListedImages listed_images(const std::string& table, const ImageList& list,
                           const std::vector<TableField>& fields);

}  // namespace data
