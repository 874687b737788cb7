// SPDX-License-Identifier: Apache-2.0
//
// Helpers for data plugins in C++: a dataset is an object of one class, made by one function.
#pragma once

#include <orrery/data.h>

#include <memory>
#include <orrery/sdk/plugin.hpp>
#include <string>
#include <vector>

namespace orr {

// See orr_data_field.
struct DataField {
  std::string name;
  std::vector<int64_t> dims;
  std::string elements;
  int32_t dtype = 0;
  bool pixels = false;
};

// What the host asks for, filled in by the constructor of a class that reads. See orr_data_info.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual void read(const int64_t* samples, int64_t n, void* const* to) const = 0;

  std::vector<DataField> fields;
  int64_t samples = 0, window = 0;
  bool slow = true;
  std::vector<std::string> classes;
};

// The options of the script.
class DataOptions {
 public:
  explicit DataOptions(const orr_options& options) : options_(options) {}
  int64_t integer(const std::string& name, int64_t fallback) const {
    return options_.integer(options_.self, name.c_str(), fallback);
  }
  double real(const std::string& name, double fallback) const {
    return options_.real(options_.self, name.c_str(), fallback);
  }
  std::string text(const std::string& name, const char* fallback) const {
    return options_.text(options_.self, name.c_str(), fallback);
  }
  bool has_text(const std::string& name) const {
    return options_.text(options_.self, name.c_str(), nullptr) != nullptr;
  }
  std::vector<std::string> texts(const std::string& list) const {
    std::vector<std::string> found;
    for (;;) {
      const std::string name = list + "." + std::to_string(found.size() + 1);
      const char* text = options_.text(options_.self, name.c_str(), nullptr);
      if (!text) return found;
      found.emplace_back(text);
    }
  }

 private:
  const orr_options& options_;
};

using OpenData = std::unique_ptr<Dataset>(const std::string& path, const DataOptions& options);

// The entry function of a plugin with this table.
template <const orr_data_api& table>
orr_status* data_entry(const orr_bootstrap* boot, orr_exports* out) {
  attach(boot);
  out->get = [](void*, const char* kind, uint32_t version) -> const void* {
    return std::string_view(kind) == "data" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

// The table of a plugin whose datasets `open` makes.
template <OpenData open>
struct Reader {
  static Dataset& of(orr_data* data) { return *reinterpret_cast<Dataset*>(data); }

  static orr_status* open_data(void*, const char* path, const orr_options* options,
                               orr_data** out) {
    return guard(
        [&] { *out = reinterpret_cast<orr_data*>(open(path, DataOptions(*options)).release()); });
  }
  static orr_status* info(orr_data* data, orr_data_info* out) {
    const Dataset& set = of(data);
    out->n_fields = static_cast<int32_t>(set.fields.size());
    out->samples = set.samples, out->window = set.window, out->slow = set.slow;
    out->n_classes = static_cast<int32_t>(set.classes.size());
    return nullptr;
  }
  static orr_status* field(orr_data* data, int32_t number, orr_data_field* out) {
    return guard([&] {
      const DataField& field = of(data).fields[static_cast<size_t>(number)];
      if (field.dims.size() > ORR_MAX_RANK)
        throw Error(ORR_INVALID, field.name + ": too many dims");
      out->name = field.name.c_str(), out->elements = field.elements.c_str();
      out->dtype = field.dtype, out->pixels = field.pixels;
      out->rank = static_cast<int32_t>(field.dims.size());
      for (size_t i = 0; i < field.dims.size(); ++i) out->dims[i] = field.dims[i];
    });
  }
  static const char* class_name(orr_data* data, int32_t number) {
    return of(data).classes[static_cast<size_t>(number)].c_str();
  }
  static orr_status* read(orr_data* data, const int64_t* samples, int64_t n, void* const* to) {
    return guard([&] { of(data).read(samples, n, to); });
  }
  static void close(orr_data* data) { delete &of(data); }

  static constexpr orr_data_api make_table() {
    orr_data_api t{};
    t.size = sizeof t, t.open = open_data, t.info = info, t.field = field;
    t.class_name = class_name, t.read = read, t.close = close;
    return t;
  }
  static constexpr orr_data_api table = make_table();
  static constexpr orr_entry entry = data_entry<table>;
};

}  // namespace orr
