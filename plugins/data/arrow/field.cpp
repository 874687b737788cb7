// SPDX-License-Identifier: Apache-2.0
#include "field.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "../images/resize.h"

namespace data {
namespace {

constexpr CellKind kBytes{arrow::Type::UINT8, "|u1", 1};
constexpr CellKind kClass{arrow::Type::INT32, "<i4", 4};

// What a dictionary stands for.
const arrow::DataType& value_type(const arrow::DataType& type) {
  if (type.id() != arrow::Type::DICTIONARY) return type;
  return *static_cast<const arrow::DictionaryType&>(type).value_type();
}

// Hugging Face's images are {bytes, path}.
bool is_image_struct(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRUCT &&
         static_cast<const arrow::StructType&>(type).GetFieldByName("bytes");
}

// The names of a ClassLabel of Hugging Face's datasets; none if it is none.
std::vector<std::string> class_label(const arrow::Schema& schema, const std::string& column) {
  const auto metadata = schema.metadata();
  const int at = metadata ? metadata->FindKey("huggingface") : -1;
  if (at < 0) return {};
  const auto json = nlohmann::json::parse(metadata->value(at), nullptr, false);
  const nlohmann::json::json_pointer place("/info/features/" + column);
  if (column.find_first_of("/~") != column.npos || !json.is_object() || !json.contains(place))
    return {};
  const auto& feature = json[place];
  if (!feature.is_object() || feature.value("_type", nlohmann::json()) != "ClassLabel") return {};
  std::vector<std::string> names;
  for (const auto& name : feature.value("names", nlohmann::json::array()))
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

int64_t product(const std::vector<int64_t>& dims, size_t from) {
  int64_t count = 1;
  for (size_t d = from; d < dims.size(); ++d) count *= dims[d];
  return count;
}

}  // namespace

std::vector<AskedField> asked_fields(const orr::DataOptions& options, const std::string& path) {
  std::vector<AskedField> fields;
  for (int i = 1;; ++i) {
    const std::string at = "fields." + std::to_string(i) + ".";
    AskedField field{options.text(at + "name", ""),
                     options.texts(at + "columns"),
                     options.integer(at + "list", 0) != 0,
                     options.text(at + "as", ""),
                     {},
                     {}};
    if (field.name.empty()) break;
    if (options.integer(at + "pads", 0)) field.pad = options.real(at + "pad", 0);
    if (options.integer(at + "fills", 0)) field.null = options.real(at + "null", 0);
    fields.push_back(std::move(field));
  }
  if (fields.empty()) refuse(path, ": no fields are asked for; write {x = {'a', 'b'}, y = 'c'}");
  return fields;
}

ColumnField::ColumnField(const AskedField& asked, const ColumnTable& table, size_t first,
                         int64_t size)
    : asked_(asked), table_(table), first_(first), size_(size) {
  const arrow::DataType& type = value_type(stored_type(*column().type()));
  const bool bytes = is_text(type) || is_bytes(type);
  const bool image = is_image_struct(type) || asked_.as == "image";
  const std::string subject = table.path() + ": column '" + column().name() + "'";
  if (asked_.as == "class" ? !is_text(type) : asked_.as == "text" && !bytes)
    refuse(subject, " is ", type.ToString(), ", no text, of which dtypes = {", asked_.name, " = '",
           asked_.as, "'} is");
  if (image && !is_image_struct(type) && !is_bytes(type))
    refuse(subject, " is ", type.ToString(), ": images are binary, or {bytes, path}");
  if (image && (size < 1 || size > kMostEdge))
    refuse(subject, " has images: give size = 224, or another edge up to ", kMostEdge);
  if ((bytes || image) && asked_.columns.size() > 1)
    refuse(table_.path(), ": field '", asked_.name, "' has several columns, of which '",
           column().name(), "' is ", type.ToString(), ": several columns are numbers");
  if ((bytes || image) && (asked_.pad || asked_.null))
    refuse(table_.path(), ": field '", asked_.name, "' is ", type.ToString(),
           ": pad and nulls are for numbers");
  what_ = image                  ? What::image
          : asked_.as == "class" ? What::classes
          : bytes                ? What::bytes
                                 : What::numbers;
  kind_ = what_ == What::classes ? kClass : kBytes;
  if (what_ == What::bytes) dims_ = {1};
  if (what_ == What::image) dims_ = {3, size_, size_};
  if (what_ == What::numbers) find_numbers();
}

// The kind of the numbers, and the dims as far as the types say them: 0 for lists of any length.
void ColumnField::find_numbers() {
  for (size_t i = 0; i < asked_.columns.size(); ++i) {
    const arrow::Field& each = *table_.column(first_ + i);
    const arrow::DataType* type = &stored_type(*each.type());
    std::vector<int64_t> dims;
    for (; is_list(*type); type = &stored_type(*type->field(0)->type()))
      dims.push_back(type->id() == arrow::Type::FIXED_SIZE_LIST
                         ? static_cast<const arrow::FixedSizeListType&>(*type).list_size()
                         : 0);
    const CellKind* kind = number_kind(*type);
    if (!kind)
      refuse(table_.path(), ": column '", each.name(), "' is ", each.type()->ToString(),
             ": numbers, lists of them, texts, and images are read; cast it when you write it");
    if (asked_.columns.size() > 1 && !dims.empty())
      refuse(table_.path(), ": column '", each.name(), "' is ", each.type()->ToString(),
             ": field '", asked_.name, "' has several columns, each of which is a number");
    const CellKind* common = i ? common_kind(kind_, *kind) : kind;
    if (!common)
      refuse(table_.path(), ": field '", asked_.name,
             "': no dtype holds unsigned numbers of 64 bits and others");
    kind_ = *common;
    dims_ = dims;
  }
  if (asked_.columns.size() > 1) dims_ = {static_cast<int64_t>(asked_.columns.size())};
  if (asked_.columns.size() == 1 && dims_.empty() && asked_.is_list) dims_ = {1};
  if (asked_.pad && (dims_.size() != 1 || asked_.columns.size() > 1))
    refuse(table_.path(), ": field '", asked_.name, "': pad is for a column of lists of numbers");
  shortest_.assign(dims_.size(), INT64_MAX);
  pad_ = converted("pad", asked_.pad), null_ = converted("nulls", asked_.null);
}

std::string ColumnField::converted(const char* what, const std::optional<double>& number) const {
  if (!number) return "";
  const auto bytes = number_as(kind_, *number);
  if (!bytes)
    refuse(table_.path(), ": ", what, ": ", *number, " is no value of field '", asked_.name,
           "', whose column is ", column().type()->ToString());
  return *bytes;
}

bool ColumnField::must_measure() const {
  return what_ == What::bytes || what_ == What::classes ||
         (what_ == What::numbers && std::count(dims_.begin(), dims_.end(), 0));
}

std::string ColumnField::where(const RowPlace& place) const {
  return table_.name(place) + ": column '" + column().name() + "'";
}

void ColumnField::refuse_null(const RowPlace& place) const {
  const char* remedy = what_ == What::numbers ? "write without it, or give nulls = {" : "";
  if (*remedy) refuse(where(place), " is null; ", remedy, asked_.name, " = 0} or another value");
  refuse(where(place), " is null; write the rows without it");
}

void ColumnField::measure(const Arrays& columns, size_t chunk) {
  const arrow::Array& array = *columns[first_];
  for (int64_t row = 0; row < array.length(); ++row) {
    const RowPlace place{chunk, row};
    if (what_ == What::numbers) {
      measure_list(array, row, 0, place);
      continue;
    }
    if (is_null(array, row)) refuse_null(place);
    const std::string_view text = bytes_at(array, row);
    if (what_ == What::bytes) {
      dims_[0] = std::max(dims_[0], static_cast<int64_t>(text.size()));
    } else if (const auto at = std::lower_bound(classes_.begin(), classes_.end(), text);
               at == classes_.end() || *at != text) {
      classes_.emplace(at, text);
    }
  }
}

void ColumnField::measure_list(const arrow::Array& array, int64_t row, size_t depth,
                               const RowPlace& place) {
  if (depth == dims_.size()) return;
  if (is_null(array, row)) return null_.empty() ? refuse_null(place) : void();
  const arrow::Array* stored = &array;
  if (array.type_id() == arrow::Type::EXTENSION)
    stored = static_cast<const arrow::ExtensionArray&>(array).storage().get();
  const ListPart part = list_at(*stored, row);
  const int64_t length = part.end - part.begin;
  shortest_[depth] = std::min(shortest_[depth], length);
  dims_[depth] = std::max(dims_[depth], length);
  if (pad_.empty() && shortest_[depth] != dims_[depth])
    refuse(where(place), " has a list of ", length, ", others have ",
           length == dims_[depth] ? shortest_[depth] : dims_[depth], ": pad = {", asked_.name,
           " = 0} fills lists up");
  for (int64_t i = part.begin; depth + 1 < dims_.size() && i < part.end; ++i)
    measure_list(*part.array, i, depth + 1, place);
}

orr::DataField ColumnField::finish(std::vector<std::string>& classes) {
  for (const int64_t dim : dims_)
    if (dim == 0)
      refuse(table_.path(), ": column '", column().name(),
             "' has empty lists alone; leave the field out");
  if (dims_.size() > ORR_MAX_RANK - 1)
    refuse(table_.path(), ": column '", column().name(), "' has lists ", dims_.size(), " deep, ",
           ORR_MAX_RANK - 1, " are the most");
  std::vector<std::string> names = classes_;
  if (what_ == What::numbers && asked_.columns.size() == 1)
    names = class_label(table_.schema(), column().name());
  if (!names.empty() && !classes.empty() && what_ == What::classes)
    refuse(table_.path(), ": field '", asked_.name,
           "': another field has classes; one can have them");
  if (!names.empty() && classes.empty()) classes = names;
  const bool image = what_ == What::image;
  return {asked_.name, dims_, kind_.elements, image ? ORR_F32 : 0, image};
}

void ColumnField::write(const Arrays& columns, const RowPlace& place, std::byte* to) const {
  const arrow::Array& array = *columns[first_];
  if (what_ == What::numbers) {
    if (asked_.columns.size() == 1) return write_list(array, place.row, 0, place, to);
    for (size_t i = 0; i < asked_.columns.size(); ++i)
      write_one(*columns[first_ + i], place.row, place, to);
    return;
  }
  if (is_null(array, place.row)) refuse_null(place);
  if (what_ == What::image) return write_image(array, place, to);
  const std::string_view text = bytes_at(array, place.row);
  if (what_ == What::bytes) {
    std::memcpy(to, text.data(), text.size());
    std::memset(to + text.size(), 0, static_cast<size_t>(dims_[0]) - text.size());
  } else {
    const auto label = static_cast<int32_t>(
        std::lower_bound(classes_.begin(), classes_.end(), text) - classes_.begin());
    std::memcpy(to, &label, sizeof label);
  }
}

void ColumnField::fill(const std::string& number, size_t count, std::byte*& to) const {
  for (size_t i = 0; i < count; ++i, to += number.size())
    std::memcpy(to, number.data(), number.size());
}

void ColumnField::write_one(const arrow::Array& array, int64_t row, const RowPlace& place,
                            std::byte*& to) const {
  if (array.type_id() == arrow::Type::EXTENSION)
    return write_one(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, place, to);
  if (is_null(array, row)) {
    if (null_.empty()) refuse_null(place);
    return fill(null_, 1, to);
  }
  write_number(array, row, kind_, to);
  to += kind_.bytes;
}

void ColumnField::write_list(const arrow::Array& array, int64_t row, size_t depth,
                             const RowPlace& place, std::byte*& to) const {
  if (array.type_id() == arrow::Type::EXTENSION)
    return write_list(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, depth,
                      place, to);
  if (depth == dims_.size() || !is_list(*array.type())) return write_one(array, row, place, to);
  if (is_null(array, row)) {
    if (null_.empty()) refuse_null(place);
    return fill(null_, static_cast<size_t>(product(dims_, depth)), to);
  }
  const ListPart part = list_at(array, row);
  for (int64_t i = part.begin; i < part.end; ++i) write_list(*part.array, i, depth + 1, place, to);
  fill(pad_, static_cast<size_t>(dims_[depth] - (part.end - part.begin)), to);
}

void ColumnField::write_image(const arrow::Array& array, const RowPlace& place,
                              std::byte* to) const {
  const arrow::Array* file = &array;
  std::shared_ptr<arrow::Array> bytes;
  if (array.type_id() == arrow::Type::STRUCT) {
    bytes = static_cast<const arrow::StructArray&>(array).GetFieldByName("bytes");
    file = bytes.get();
    if (!is_bytes(*file->type()))
      refuse(where(place), ": its bytes are ", file->type()->ToString());
    if (is_null(*file, place.row))
      refuse(where(place), " has no bytes, a path at most: save the images within the file");
  }
  const std::string_view view = bytes_at(*file, place.row);
  const auto* begin = reinterpret_cast<const std::byte*>(view.data());
  const Image image = decode_image({begin, begin + view.size()}, where(place));
  write_planes(square(image, size_, where(place)), reinterpret_cast<uint8_t*>(to));
}

}  // namespace data
