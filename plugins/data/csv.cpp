// SPDX-License-Identifier: Apache-2.0
//
// Tables as text: a line of column names, then a line for each sample, values between commas. The
// table is kept in memory; its file may be packed by gzip. The option `fields` is a list of
//   name     of the field
//   columns  a list of names
//   list     true: one column gives [1], else a number alone; several always give a list
//   dtype    "f32", ...; "class": texts, each the number of its text among all sorted; without it
//            f32, and a whole number that f32 would round is refused
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "csv_rows.h"
#include "formats.h"
#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

// What a value is kept as.
struct Kind {
  const char* name;
  int32_t dtype;
  const char* elements;
  size_t bytes;
  bool real;
};

const Kind& kind_of(const std::string& name) {
  static const Kind kinds[] = {
      {"f32", ORR_F32, "<f4", 4, true},   {"f64", ORR_F64, "<f8", 8, true},
      {"bf16", ORR_BF16, "<f8", 8, true}, {"f16", ORR_F16, "<f8", 8, true},
      {"i32", ORR_I32, "<i4", 4, false},  {"i64", ORR_I64, "<i8", 8, false},
      {"u8", ORR_U8, "|u1", 1, false},    {"bool", ORR_BOOL, "|b1", 1, false}};
  for (const Kind& kind : kinds)
    if (name == kind.name) return kind;
  refuse("unknown dtype '", name, "': one of f32, f64, bf16, f16, i32, i64, u8, bool");
}

struct Field {
  std::string name;
  std::vector<std::string> columns;
  bool is_list, is_class;
  bool exact;  // whole numbers that the kind rounds are refused
  const Kind& kind;
};

std::vector<Field> fields_in(const orr::DataOptions& options) {
  std::vector<Field> fields;
  for (int i = 1;; ++i) {
    const std::string at = "fields." + std::to_string(i) + ".";
    const std::string name = options.text(at + "name", "");
    if (name.empty()) return fields;
    const std::string dtype = options.text(at + "dtype", "");
    const bool is_class = dtype == "class", is_free = dtype.empty();
    fields.push_back({name, options.texts(at + "columns"), options.integer(at + "list", 0) != 0,
                      is_class, is_free,
                      kind_of(is_class  ? "i32"
                              : is_free ? "f32"
                                        : dtype)});
  }
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Whether it has digits alone, and more of them than an f32 holds: 24 bits.
bool is_rounded_by_f32(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  uint64_t size = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (at != text.data() + text.size() || error == std::errc::invalid_argument) return false;
  return error != std::errc() || (size && size >> std::countr_zero(size) >= 1 << 24);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// One of the fields while the table is read: the places of its columns, and its bytes so far.
class Reading {
 public:
  Reading(const Field& field, const std::vector<std::string>& header, const std::string& path)
      : field_(field), path_(path) {
    if (field.columns.empty()) refuse("csv: '", field.name, "' has no columns; give at least one");
    if (field.is_class && field.columns.size() > 1)
      refuse("csv: '", field.name, "' has ", field.columns.size(), " columns: a class is of one");
    for (const std::string& column : field.columns) {
      const auto found = std::find(header.begin(), header.end(), column);
      if (found == header.end())
        refuse(path, ": there is no column '", column, "'; it has ", listed(header));
      if (std::find(found + 1, header.end(), column) != header.end())
        refuse(path, ": two columns are named '", column, "'; rename one");
      places_.push_back(static_cast<size_t>(found - header.begin()));
    }
  }

  void add(const std::vector<std::string>& row, int64_t line) {
    for (size_t i = 0; i < places_.size(); ++i) {
      if (field_.is_class)
        texts_.push_back(row[places_[i]]);
      else
        add_number(trimmed(row[places_[i]]), line, field_.columns[i]);
    }
  }

  // Texts become numbers once all are known; `classes` gets them.
  Column finish(std::vector<std::string>& classes) {
    if (field_.is_class) {
      const std::set<std::string> sorted(texts_.begin(), texts_.end());
      classes.assign(sorted.begin(), sorted.end());
      for (const std::string& text : texts_)
        keep(static_cast<int32_t>(std::lower_bound(classes.begin(), classes.end(), text) -
                                  classes.begin()));
    }
    std::vector<int64_t> dims;
    if (field_.is_list || places_.size() != 1) dims = {static_cast<int64_t>(places_.size())};
    const size_t bytes = places_.size() * field_.kind.bytes;
    return {{field_.name, dims, field_.kind.elements, field_.kind.dtype},
            std::make_shared<Bytes>(std::move(bytes_), path_),
            0,
            bytes,
            bytes};
  }

 private:
  void add_number(std::string_view text, int64_t line, const std::string& column) {
    const auto place = [&] {
      return path_ + ": line " + std::to_string(line) + ": column '" + column + "'";
    };
    const auto expect = [&](bool good, const char* expected) {
      if (!good)
        refuse(place(), " has '", text.substr(0, 40), "', ", expected,
               " expected; correct it, or give dtypes");
    };
    const char *begin = text.data(), *end = begin + text.size();
    if (field_.kind.real) {
      double value = 0;
      const auto [at, error] = std::from_chars(begin, end, value);
      expect(error == std::errc() && at == end && std::isfinite(value), "a number");
      if (field_.exact && is_rounded_by_f32(text)) refuse_rounding(place(), text);
      if (field_.kind.bytes == 8) return keep(value);
      if (std::isinf(static_cast<float>(value))) refuse_narrow(place(), text);
      return keep(static_cast<float>(value));
    }
    int64_t value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    expect(error == std::errc() && at == end, "a whole number");
    if (!keep_whole(value)) refuse_narrow(place(), text);
  }

  [[noreturn]] void refuse_narrow(const std::string& place, std::string_view value) const {
    refuse(place, ": the value ", value, " does not fit into ", field_.kind.name,
           "; ask for a wider dtype");
  }

  [[noreturn]] void refuse_rounding(const std::string& place, std::string_view value) const {
    refuse(place, ": f32 would round the whole number ", value, "; dtypes = {", field_.name,
           " = \"i64\"} or \"f64\" keeps it, \"f32\" rounds it");
  }

  // false: it does not fit.
  bool keep_whole(int64_t value) {
    switch (field_.kind.dtype) {
      case ORR_I32:
        return std::in_range<int32_t>(value) && (keep(static_cast<int32_t>(value)), true);
      case ORR_U8:
        return std::in_range<uint8_t>(value) && (keep(static_cast<uint8_t>(value)), true);
      case ORR_BOOL: return keep(static_cast<uint8_t>(value != 0)), true;
      default: return keep(value), true;
    }
  }

  template <class T>
  void keep(T value) {
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
  }

  const Field& field_;
  const std::string& path_;
  std::vector<size_t> places_;
  std::vector<std::string> texts_;
  std::vector<std::byte> bytes_;
};

// Reads all lines below the names; returns how many there are.
int64_t read_rows(CsvRows& rows, size_t columns, std::vector<Reading>& reading,
                  const std::string& path) {
  std::vector<std::string> row;
  int64_t samples = 0;
  for (; rows.next(row); ++samples) {
    if (row.size() != columns)
      refuse(path, ": line ", rows.line(), ": ", row.size(), " values, the first line names ",
             columns, " columns");
    for (Reading& each : reading) each.add(row, rows.line());
  }
  if (samples == 0) refuse(path, ": there is no line below the column names");
  return samples;
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::vector<Field> fields = fields_in(options);
  if (fields.empty()) refuse("csv: no fields; write {x = {\"a\", \"b\"}, y = \"c\"}");
  if (std::count_if(fields.begin(), fields.end(), [](auto& field) { return field.is_class; }) > 1)
    refuse(path, ": several fields are classes; a dataset has one, make others numbers");
  const BytesPtr bytes = open_unpacked(path);
  refuse_formats(*bytes, "a table as text: save it as .csv");
  const std::vector<std::byte> file = bytes->all();
  CsvRows rows(std::string(reinterpret_cast<const char*>(file.data()), file.size()), path);
  std::vector<std::string> header, classes;
  if (!rows.next(header)) refuse(path, ": the file is empty");
  for (std::string& name : header) name = std::string(trimmed(name));
  std::vector<Reading> reading;
  for (const Field& field : fields) reading.emplace_back(field, header, path);
  const int64_t samples = read_rows(rows, header.size(), reading, path);
  std::vector<Column> columns;
  for (Reading& each : reading) columns.push_back(each.finish(classes));
  auto table = std::make_unique<Rows>(std::move(columns), samples);
  table->classes = std::move(classes);
  return table;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "csv", "0.1.0", "Tables as text, values between commas",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
