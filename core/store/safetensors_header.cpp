// SPDX-License-Identifier: Apache-2.0
//
// The JSON parser calls a function for each event, so that nesting and repeated keys take no
// memory, and each value is checked for the field that it stands in.
#include "store/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr const char* kRemedy = "; restore the file from a copy or save it again";

// What the engine writes, in the order of the specification, by alignment.
constexpr std::array<int32_t, 10> kOrder = {ORR_BOOL, ORR_U8,  ORR_F8_E5M2, ORR_F8_E4M3, ORR_F16,
                                            ORR_BF16, ORR_I32, ORR_F32,     ORR_F64,     ORR_I64};

// A name from the file for messages: control characters are escaped, and long names are cut.
std::string shown(const std::string& name) {
  constexpr size_t most = 80;
  std::string text = name.size() > most ? name.substr(0, most) + "..." : name;
  std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return "'" + quoted.substr(1, quoted.size() - 2) + "'";
}

class HeaderReader {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit HeaderReader(const std::string& label) : label_(label) {}
  std::vector<SafetensorsEntry> take() { return std::move(entries_); }

  // -- events of the JSON parser ------------------------------------------------------------------
  bool null() { unexpected(); }
  bool boolean(bool) { unexpected(); }
  bool number_integer(number_integer_t) { unexpected(); }
  bool number_float(number_float_t, const string_t&) { unexpected(); }
  bool binary(binary_t&) { unexpected(); }

  bool number_unsigned(number_unsigned_t value) {
    if (level_ == Level::shape) {
      add_dim(value);
    } else if (level_ == Level::offsets) {
      if (offsets_.size() == 2)
        bad("tensor {}: data_offsets has more than 2 numbers", shown(name_));
      offsets_.push_back(value);
    } else {
      unexpected();
    }
    return true;
  }

  bool string(string_t& value) {
    if (level_ == Level::metadata) return true;
    if (level_ != Level::tensor || field_ != "dtype") unexpected();
    kind_ = stored_by_safetensors(value);
    if (!kind_)
      bad("tensor {}: dtype {} is not one of BOOL, U8, I8, U16, I16, U32, I32, U64, I64, F8_E5M2, "
          "F8_E4M3, BF16, F16, F32, F64",
          shown(name_), shown(value));
    return true;
  }

  bool start_object(size_t) {
    if (level_ == Level::nowhere) {
      level_ = Level::top;
    } else if (level_ == Level::top) {
      level_ = name_ == kMetadata ? Level::metadata : Level::tensor;
    } else {
      unexpected();
    }
    return true;
  }

  bool key(string_t& value) {
    if (level_ == Level::top) {
      begin_tensor(value);
    } else if (!fields_.insert(value).second) {
      bad("{}: field {} is given twice", shown(name_), shown(value));
    } else if (level_ == Level::tensor && value != "dtype" && value != "shape" &&
               value != "data_offsets") {
      bad("tensor {}: field {} is not one of dtype, shape, data_offsets", shown(name_),
          shown(value));
    }
    field_ = level_ == Level::top ? "" : value;
    return true;
  }

  bool end_object() {
    if (level_ == Level::tensor) end_tensor();
    level_ = level_ == Level::top ? Level::nowhere : Level::top;
    return true;
  }

  bool start_array(size_t) {
    if (level_ != Level::tensor || field_ == "dtype") unexpected();
    level_ = field_ == "shape" ? Level::shape : Level::offsets;
    return true;
  }

  bool end_array() {
    level_ = Level::tensor;
    return true;
  }

  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception&) {
    bad("the header is not valid JSON at its byte {}", position);
  }

 private:
  enum class Level { nowhere, top, metadata, tensor, shape, offsets };

  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> text, Args&&... args) const {
    fail(ORR_FAILED, "{}: {}{}", label_, fmt::format(text, std::forward<Args>(args)...), kRemedy);
  }

  [[noreturn]] void unexpected() const {
    if (level_ == Level::nowhere) bad("the header is not a JSON object");
    if (level_ == Level::top) bad("{} is not a JSON object", shown(name_));
    if (level_ == Level::metadata) bad("{}: {} is not a string", kMetadata, shown(field_));
    if (field_ == "dtype") bad("tensor {}: dtype is not a string", shown(name_));
    bad("tensor {}: {} is not a list of whole numbers from 0", shown(name_), field_);
  }

  void begin_tensor(const std::string& name) {
    if (name.empty()) bad("a tensor has an empty name");
    if (name.find('\0') != std::string::npos) bad("tensor {}: the name holds a NUL", shown(name));
    if (!names_.insert(name).second) bad("tensor {} is given twice", shown(name));
    name_ = name;
    fields_.clear();
    dims_.clear();
    offsets_.clear();
  }

  void add_dim(uint64_t value) {
    if (dims_.size() == ORR_MAX_RANK)
      bad("tensor {}: shape has more than {} dims", shown(name_), static_cast<int>(ORR_MAX_RANK));
    if (value > INT64_MAX) bad("tensor {}: shape overflows 64 bits", shown(name_));
    dims_.push_back(static_cast<int64_t>(value));
  }

  int64_t packed_bytes() const {
    int64_t product = 1, held = 0;
    bool over = false;
    for (int64_t dim : dims_) over |= __builtin_mul_overflow(product, dim, &product);
    over |= __builtin_mul_overflow(product, orr_dtype_bytes(kind_->dtype), &held);
    over |= __builtin_mul_overflow(product, kind_->bytes, &product);
    if (over) bad("tensor {}: shape {} overflows 64 bits", shown(name_), to_string(dims_));
    return product;
  }

  void end_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) bad("tensor {}: {} is missing", shown(name_), field);
    if (offsets_.size() != 2)
      bad("tensor {}: data_offsets has {} numbers instead of 2", shown(name_), offsets_.size());
    int64_t bytes = packed_bytes();
    auto [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (begin > end || end - begin != static_cast<uint64_t>(bytes))
      bad("tensor {}: data_offsets [{},{}] do not span the {} bytes of {}", shown(name_), begin,
          end, bytes, to_string(Type{kind_->dtype, dims_}));
    entries_.push_back({name_, {kind_->dtype, dims_}, begin, end, kind_->kind});
  }

  const std::string& label_;
  Level level_ = Level::nowhere;
  std::string name_, field_;  // the tensor, and its field, that are being read
  std::unordered_set<std::string> names_, fields_;
  const StoredKind* kind_ = nullptr;
  Dims dims_;
  std::vector<uint64_t> offsets_;
  std::vector<SafetensorsEntry> entries_;
};

void check_places(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes,
                  const std::string& label) {
  uint64_t at = 0;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin != at)
      fail(ORR_FAILED, "{}: tensor {} begins at byte {} of the data, {} byte {}{}", label,
           shown(e.name), e.begin,
           e.begin > at ? "after a hole from" : "inside another that ends at", at, kRemedy);
    at = e.end;
  }
  if (at != data_bytes)
    fail(ORR_FAILED, "{} {}: the header describes {} bytes of data and the file holds {}{}", label,
         at > data_bytes ? "is truncated" : "has trailing bytes", at, data_bytes, kRemedy);
}

}  // namespace

int safetensors_order(int32_t dtype) {
  return static_cast<int>(std::find(kOrder.begin(), kOrder.end(), dtype) - kOrder.begin());
}

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                                       const std::string& label) {
  if (text.empty() || text[0] != '{')
    fail(ORR_FAILED, "{}: the header does not begin with '{{'{}", label, kRemedy);
  // The JSON parser stops at a NUL, and would not read what follows it.
  if (text.find('\0') != text.npos)
    fail(ORR_FAILED, "{}: the header holds a NUL{}", label, kRemedy);
  HeaderReader reader(label);
  Json::sax_parse(text.begin(), text.end(), &reader);
  auto entries = reader.take();
  // An empty tensor begins at the same byte as the one after it, and is sorted before that.
  std::sort(entries.begin(), entries.end(),
            [](auto& a, auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  check_places(entries, data_bytes, label);
  return entries;
}

std::string render_safetensors_header(const std::vector<SafetensorsEntry>& entries,
                                      const Metadata& metadata) {
  std::string text = R"({"__metadata__":{"format":"pt")";  // the library transformers requires it
  for (auto& [key, value] : metadata)
    text += fmt::format(",{}:{}", Json(key).dump(), Json(value).dump());
  text += '}';
  for (const SafetensorsEntry& e : entries) {
    std::string name;
    try {
      name = Json(e.name).dump();
    } catch (const Json::exception&) {
      fail(ORR_INVALID, "tensor {}: the name is not UTF-8; rename it", shown(e.name));
    }
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name,
                        stored_kind(e.kind).safetensors, to_string(e.type.dims), e.begin, e.end);
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace orrery
