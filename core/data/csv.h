// SPDX-License-Identifier: Apache-2.0
//
// Tables as text: a line of column names, then a line for each sample, values between commas.
#pragma once

#include "data/dataset.h"

namespace orrery {

// A field out of columns of numbers, or of one column of texts.
struct CsvField {
  std::string name;
  std::vector<std::string> columns;
  bool is_list = false;  // one column gives [1] then, else a number alone
  int32_t dtype = ORR_F32;
  bool is_class = false;  // texts: the number of a text among all sorted, which are the classes
};

// Values may stand in quotes ("" is one quote inside of them), and then hold commas and line ends.
// The table is kept in memory. Throws Error that names file, line, column, value and remedy.
DatasetPtr csv_file(const std::string& path, const std::vector<CsvField>& fields);

}  // namespace orrery
