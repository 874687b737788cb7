// SPDX-License-Identifier: Apache-2.0
//
// Columns of a CSV table as fields of a dataset.
#pragma once

#include <functional>
#include <memory>

#include "csv_table.h"
#include "table_field.h"

namespace data {

// Reads all rows; `see` sees each of them, too. The dataset has the classes of one of the fields.
std::unique_ptr<Rows> read_fields(
    CsvTable& table, const std::vector<TableField>& fields,
    const std::function<void(const std::vector<std::string>& row)>& see);

}  // namespace data
