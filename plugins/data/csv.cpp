// SPDX-License-Identifier: Apache-2.0
//
// Tables as text: a line of column names, then a line for each sample, values between commas. The
// table is kept in memory; its file may be packed by gzip or zstd. Fields are asked for as
// table_field.h says.
#include "csv_fields.h"

namespace data {
namespace {

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::vector<TableField> fields = table_fields(options, "csv", path);
  CsvTable table(path);
  return read_fields(table, fields, [](const std::vector<std::string>&) {});
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "csv", "0.1.0", "Tables as text, values between commas",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
