// SPDX-License-Identifier: Apache-2.0
//
// Datasets as the plugins of the build tree read them.
#pragma once

#include <string>
#include <vector>

#include "data/joined.h"
#include "data/opened.h"
#include "program/state.h"

namespace orrery {

inline DatasetPtr joined_files(const std::string& format, const std::vector<std::string>& paths,
                               const Attrs& options,
                               const std::map<std::string, int32_t>& dtypes = {}) {
  std::vector<DatasetPtr> parts;
  for (const std::string& path : paths) parts.push_back(open_data(format, path, options, dtypes));
  return join(parts, paths);
}

// The bytes of a field of a sample.
inline std::vector<std::byte> read_one(const Dataset& data, const Pick& pick, size_t field) {
  std::vector<std::byte> bytes(data.fields()[field].sample.bytes());
  std::vector<std::byte*> to(data.fields().size());
  to[field] = bytes.data();
  data.read({&pick, 1}, to);
  return bytes;
}

inline HostTensor load_npy(const std::string& path) {
  const DatasetPtr array = open_data("npy", path, {{"whole", int64_t{1}}}, {});
  return {array->fields()[0].sample,
          std::make_shared<std::vector<std::byte>>(read_one(*array, {0}, 0))};
}

inline DatasetPtr token_files(const std::vector<std::string>& paths, const std::string& kind,
                              int64_t length) {
  return joined_files("tokens", paths, {{"dtype", kind}, {"length", length}});
}

inline DatasetPtr idx_files(const std::string& images, const std::string& labels, int32_t dtype) {
  return open_data("idx", images, {{"labels", labels}}, {{"x", dtype}});
}

inline DatasetPtr cifar_files(const std::vector<std::string>& paths, int64_t classes,
                              int32_t dtype) {
  return joined_files("cifar", paths, {{"classes", classes}}, {{"x", dtype}});
}

inline DatasetPtr image_directory(const std::string& directory, int64_t size, int32_t dtype) {
  return open_data("images", directory, {{"size", size}}, {{"x", dtype}});
}

// Of a table in CSV or JSON lines.
struct CsvField {
  std::string name;
  std::vector<std::string> columns;
  bool is_list = false;
  std::string dtype = "";  // none is asked for
};

inline DatasetPtr table_file(const std::string& format, const std::string& path,
                             const std::vector<CsvField>& fields) {
  Attrs options;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string at = "fields." + std::to_string(i + 1) + ".";
    options.set(at + "name", fields[i].name);
    if (!fields[i].dtype.empty()) options.set(at + "dtype", fields[i].dtype);
    options.set(at + "list", int64_t{fields[i].is_list});
    for (size_t k = 0; k < fields[i].columns.size(); ++k)
      options.set(at + "columns." + std::to_string(k + 1), fields[i].columns[k]);
  }
  return open_data(format, path, options, {});
}

inline DatasetPtr csv_file(const std::string& path, const std::vector<CsvField>& fields) {
  return table_file("csv", path, fields);
}

// A field of all samples.
inline std::vector<std::byte> read_all(const DatasetPtr& data, size_t field) {
  std::vector<std::byte> all;
  for (int64_t i = 0; i < data->samples(); ++i) {
    const std::vector<std::byte> one = read_one(*data, {i}, field);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

}  // namespace orrery
