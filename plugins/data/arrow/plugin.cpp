// SPDX-License-Identifier: Apache-2.0
//
// Parquet, Arrow's files (Feather) and streams, and directories of them such as Hugging Face's
// datasets saves, by Apache Arrow's library. Options: `fields` (field.h); `more` lists the files or
// directories that follow the first; `split` names one of a directory's; `size` is the edge of
// images; `memory` how many bytes of chunks are kept.
#include "../rows.h"
#include "field.h"
#include "files.h"

namespace data {
namespace {

constexpr int64_t kMemory = int64_t{1} << 30;

std::vector<std::string> columns_of(const std::vector<AskedField>& fields) {
  std::vector<std::string> columns;
  for (const AskedField& field : fields)
    columns.insert(columns.end(), field.columns.begin(), field.columns.end());
  return columns;
}

class Columns : public orr::Dataset {
 public:
  Columns(const std::vector<std::string>& files, const std::vector<AskedField>& asked, int64_t size,
          int64_t memory)
      : table_(files, columns_of(asked), memory) {
    size_t first = 0;
    for (const AskedField& each : asked) {
      made_.emplace_back(each, table_, first, size);
      first += each.columns.size();
    }
    measure();
    for (ColumnField& each : made_) {
      fields.push_back(each.finish(classes));
      bytes_.push_back(bytes_in(fields.back()));
    }
    samples = table_.rows();
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    std::shared_ptr<const Arrays> chunk;
    size_t number = SIZE_MAX;
    // The rows of a chunk one after another, so that it is read once.
    for (const int64_t i : by_row(wanted, n)) {
      const RowPlace place = table_.place(wanted[i]);
      if (place.chunk != number) chunk = table_.chunk(number = place.chunk);
      for (size_t f = 0; f < made_.size(); ++f)
        if (to[f])
          made_[f].write(*chunk, place,
                         static_cast<std::byte*>(to[f]) + static_cast<size_t>(i) * bytes_[f]);
    }
  }

 private:
  static size_t bytes_in(const orr::DataField& field) {
    size_t bytes = static_cast<size_t>(field.elements[2] - '0');
    for (const int64_t dim : field.dims) bytes *= static_cast<size_t>(dim);
    return bytes;
  }

  void measure() {
    const auto must = [](const ColumnField& each) { return each.must_measure(); };
    std::vector<ColumnField*> unknown;
    for (ColumnField& each : made_)
      if (must(each)) unknown.push_back(&each);
    for (size_t k = 0; !unknown.empty() && k < table_.chunks(); ++k)
      for (ColumnField* each : unknown) each->measure(*table_.chunk(k), k);
  }

  ColumnTable table_;
  std::vector<ColumnField> made_;
  std::vector<size_t> bytes_;  // of each field of a sample
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::vector<AskedField> asked = asked_fields(options, path);
  const std::string split = options.text("split", "");
  const int64_t size = options.integer("size", 0), memory = options.integer("memory", kMemory);
  if (memory < 0) refuse("memory is ", memory, " bytes: 0 or more");
  std::vector<std::string> paths = options.texts("more"), files;
  paths.insert(paths.begin(), path);
  for (const std::string& each : paths)
    for (std::string& file : column_files(each, split)) files.push_back(std::move(file));
  return std::make_unique<Columns>(files, asked, size, memory);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "arrow", "0.1.0", "Parquet, Arrow and Hugging Face's saved datasets",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
