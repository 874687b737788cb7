// SPDX-License-Identifier: Apache-2.0
//
// JSON lines: an object on each line, which is a sample. The values that are asked for are kept in
// memory; the file may be packed by gzip or zstd. Fields are asked for as table_field.h says, by
// the objects' keys; a value may also be a list of numbers, or of lists that are equally long, and
// gives the field its dims. Of several keys each is a number.
#include <nlohmann/json.hpp>
#include <string_view>

#include "formats.h"
#include "refuse.h"
#include "table_field.h"

namespace data {
namespace {

using Json = nlohmann::json;

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return dims.empty() ? "a number" : "[" + text + "]";
}

// Of lists that are equally long, or not: the first ones count.
std::vector<int64_t> dims_of(const Json& value) {
  std::vector<int64_t> dims;
  for (const Json* at = &value; at->is_array(); at = &at->front()) {
    dims.push_back(static_cast<int64_t>(at->size()));
    if (at->empty()) break;
  }
  return dims;
}

// One of the fields while the lines are read.
class Reading {
 public:
  Reading(const TableField& field, const std::string& path) : values_(field), path_(path) {}

  void add(const Json& object, int64_t line) {
    for (const std::string& key : values_.field().columns) {
      const ValuePlace place{path_, line, "key", key};
      const auto found = object.find(key);
      if (found == object.end())
        refuse(path_, ": line ", line, ": there is no key '", key, "'; every line needs it");
      add_value(*found, place);
    }
    known_ = true;
  }

  Column finish(std::vector<std::string>& classes) { return values_.finish(dims_, path_, classes); }

 private:
  void add_value(const Json& value, const ValuePlace& place) {
    const TableField& field = values_.field();
    if (field.takes_text()) {
      if (!value.is_string()) refuse_kind(value, place, "a text");
      if (field.is_list) dims_ = {1};
      return values_.add_text(value.get_ref<const std::string&>());
    }
    const bool one = field.columns.size() == 1;
    const std::vector<int64_t> dims = one ? dims_of(value) : std::vector<int64_t>{};
    if (!known_) take_dims(dims, place);
    add_numbers(value, one && !is_single(value) ? dims_.size() : 0, place);
  }

  // Whether it is a number alone where a list of one is asked for.
  bool is_single(const Json& value) const {
    return values_.field().is_list && !value.is_array() && dims_ == std::vector<int64_t>{1};
  }

  // The first line says them.
  void take_dims(const std::vector<int64_t>& dims, const ValuePlace& place) {
    const TableField& field = values_.field();
    dims_ = dims;
    if (field.columns.size() > 1) dims_ = {static_cast<int64_t>(field.columns.size())};
    if (field.columns.size() == 1 && field.is_list && dims.empty()) dims_ = {1};
    for (const int64_t dim : dims_)
      if (dim == 0) refuse(place.text(), " is an empty list; leave the line out");
    if (dims_.size() > ORR_MAX_RANK - 1)
      refuse(place.text(), " has lists ", dims_.size(), " deep, ", ORR_MAX_RANK - 1,
             " are the most");
  }

  // `depth`: how many lists are inside of one another from here.
  void add_numbers(const Json& value, size_t depth, const ValuePlace& place) {
    if (depth == 0) return add_number(value, place);
    const int64_t wanted = dims_[dims_.size() - depth];
    if (!value.is_array() || static_cast<int64_t>(value.size()) != wanted)
      refuse(place.text(), " is ", text_of(dims_of(value)), ", the first line has ", text_of(dims_),
             ": all samples have the same dims");
    for (const Json& each : value) add_numbers(each, depth - 1, place);
  }

  void add_number(const Json& value, const ValuePlace& place) {
    if (value.is_boolean()) return values_.add_number(value.get<bool>() ? "1" : "0", place);
    if (!value.is_number()) refuse_kind(value, place, "a number");
    values_.add_number(value.dump(), place);
  }

  [[noreturn]] static void refuse_kind(const Json& value, const ValuePlace& place,
                                       const char* expected) {
    constexpr auto replace = Json::error_handler_t::replace;
    refuse(place.text(), " has ", value.dump(-1, ' ', false, replace).substr(0, 40), ", ", expected,
           " expected; correct it, or give dtypes: 'class' numbers texts, 'text' keeps them");
  }

  FieldValues values_;
  const std::string& path_;
  std::vector<int64_t> dims_;
  bool known_ = false;  // the dims
};

Json object_in(std::string_view line, int64_t number, const std::string& path) {
  Json object = Json::parse(line, nullptr, false);
  if (object.is_discarded())
    refuse(path, ": line ", number, " is no JSON; correct it or leave it out");
  if (!object.is_object())
    refuse(path, ": line ", number, " is no object: {\"key\": value} is expected");
  return object;
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::vector<TableField> fields = table_fields(options, "jsonl", path);
  const BytesPtr bytes = open_unpacked(path);
  refuse_formats(*bytes, "lines of JSON: save it as .jsonl");
  const std::vector<std::byte> file = bytes->all();
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  std::vector<Reading> reading;
  for (const TableField& field : fields) reading.emplace_back(field, path);
  int64_t samples = 0;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const Json object = object_in(line, number, path);
    for (Reading& each : reading) each.add(object, number);
    ++samples;
  }
  if (samples == 0) refuse(path, ": the file is empty");
  std::vector<Column> columns;
  std::vector<std::string> classes;
  for (Reading& each : reading) columns.push_back(each.finish(classes));
  auto table = std::make_unique<Rows>(std::move(columns), samples);
  table->classes = std::move(classes);
  return table;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "jsonl", "0.1.0", "JSON lines", orr::Reader<data::open>::entry, 1,
           {{"data", 1, 1}})
