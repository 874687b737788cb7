// SPDX-License-Identifier: Apache-2.0
#include "listed.h"

#include <filesystem>

#include "../refuse.h"

namespace fs = std::filesystem;

namespace data {

ListedImages listed_images(const std::string& path, const ImageList& list,
                           const std::vector<TableField>& fields) {
  CsvTable table(path);
  const size_t place = table.place(list.column);
  ListedImages found;
  found.columns = read_fields(table, fields, [&](const std::vector<std::string>& row) {
    const std::string_view name = trimmed(row[place]);
    const auto where = [&] {
      return path + ": line " + std::to_string(table.line()) + ": column '" + list.column + "'";
    };
    if (name.empty()) refuse(where(), " is empty; it names a file");
    found.paths.push_back((fs::path(list.folder) / (std::string(name) + list.ending)).string());
    std::error_code broken;
    if (found.paths.size() == 1 && !fs::exists(found.paths[0], broken))
      refuse(where(), ": there is no file ", found.paths[0],
             ": folder says where files are, ending what their names lack (ending = '.jpg')");
  });
  return found;
}

}  // namespace data
