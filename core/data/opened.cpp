// SPDX-License-Identifier: Apache-2.0
//
// A plugin copies elements as files hold them; here they become those of tensors.
#include "data/opened.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "data/asked_options.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "store/stored.h"

namespace orrery {
namespace {

using Dtypes = std::map<std::string, int32_t>;
constexpr int64_t kMostSamples = int64_t{1} << 48;  // more than any files have
constexpr uint64_t kMostRawBytes = 256 * 1024;      // of elements that are read at once

// An open dataset, closed with this object.
struct Handle {
  const orr_data_api& api;
  orr_data* data = nullptr;

  explicit Handle(const orr_data_api& table) : api(table) {}
  ~Handle() {
    if (data) api.close(data);
  }
  Handle(const Handle&) = delete;
};

// Memory for what a plugin reads, with a border that it must leave alone: what it writes there
// would be in the middle of other fields or samples.
struct Guarded {
  static constexpr size_t kBorder = 4096;
  static constexpr std::byte kMark{0xa5};
  size_t size;
  std::unique_ptr<std::byte[]> bytes;

  explicit Guarded(size_t n)
      : size(n), bytes(std::make_unique_for_overwrite<std::byte[]>(n + kBorder)) {
    std::fill_n(bytes.get() + size, kBorder, kMark);
  }
  bool is_overrun() const {
    return std::any_of(bytes.get() + size, bytes.get() + size + kBorder,
                       [](std::byte b) { return b != kMark; });
  }
};

// Throws Error unless the number of bytes fits into 63 bits.
void check_dims(const std::string& subject, const Dims& dims) {
  int64_t bytes = 8;
  bool wrong = false;
  for (int64_t dim : dims) wrong |= dim < 0 || __builtin_mul_overflow(bytes, dim, &bytes);
  if (wrong) fail(ORR_FAILED, "{}: {} are no dims of a sample", subject, to_string(dims));
}

class Opened : public Dataset {
 public:
  Opened(const std::string& format, const std::string& path, const Attrs& options,
         const Dtypes& dtypes)
      : subject_(fmt::format("data '{}'", format)),
        path_(path),
        open_(Registry::get().data(format)) {
    const AskedOptions asked(options);
    const orr_options table = asked.table();
    orr_data* data = nullptr;
    orr_status* status = open_.api.open(open_.api.self, path.c_str(), &table, &data);
    if (!status) open_.data = data;
    asked.check_call(status, format);
    if (!open_.data) fail(ORR_FAILED, "{}: open gave no dataset", subject_);
    describe(dtypes);
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    std::vector<std::byte*> at(to.begin(), to.end());
    while (!picks.empty()) {
      const size_t count = std::min(most_at_once_, picks.size());
      read_some(picks.first(count), at);
      for (size_t f = 0; f < at.size(); ++f)
        if (at[f]) at[f] += count * fields_[f].sample.bytes();
      picks = picks.subspan(count);
    }
  }
  bool slow() const override { return slow_; }

 private:
  void describe(const Dtypes& dtypes) {
    orr_data_info info{};
    info.size = sizeof info;
    check(open_.api.info(open_.data, &info));
    if (info.n_fields < 1 || info.samples < 1 || info.samples > kMostSamples || info.window < 0 ||
        info.n_classes < 0)
      fail(ORR_FAILED, "{}: {} fields, {} samples, a window of {}, {} classes", subject_,
           info.n_fields, info.samples, info.window, info.n_classes);
    samples_ = info.samples, window_ = info.window, slow_ = info.slow != 0;
    for (int32_t i = 0; i < info.n_fields; ++i) add_field(i, dtypes);
    for (int32_t i = 0; i < info.n_classes; ++i) {
      const char* name = open_.api.class_name(open_.data, i);
      classes_.emplace_back(name ? name : "");
    }
    for (const auto& [name, dtype] : dtypes) check_known(name);
  }

  void add_field(int32_t number, const Dtypes& dtypes) {
    orr_data_field field{};
    field.size = sizeof field;
    check(open_.api.field(open_.data, number, &field));
    const std::string name = field.name ? field.name : "";
    const std::string elements = field.elements ? field.elements : "";
    const std::optional<Elements> stored = elements_by_numpy(elements);
    const bool dims_fit = field.rank >= 0 && field.rank <= ORR_MAX_RANK;
    const bool named = !name.empty() && std::none_of(name.begin(), name.end(), [](unsigned char c) {
      return std::iscntrl(c);
    });
    if (!named || !stored || !dims_fit)
      fail(ORR_FAILED, "{}: field {} has the name '{}', elements '{}' and {} dims", subject_,
           number, name, elements, field.rank);
    Type type{field.dtype ? field.dtype : stored_kind(stored->kind).dtype,
              Dims(field.dims, field.dims + field.rank)};
    if (const auto wanted = dtypes.find(name); wanted != dtypes.end()) type.dtype = wanted->second;
    check_dims(subject_, type.dims);
    if (!orr_dtype_bytes(type.dtype))
      fail(ORR_FAILED, "{}: field '{}' has dtype {}", subject_, name, type.dtype);
    add(name, type, *stored, field.pixels != 0);
  }

  void add(const std::string& name, const Type& type, Elements elements, bool pixels) {
    for (const DataField& each : fields_)
      if (each.name == name) fail(ORR_FAILED, "{}: two fields are named '{}'", subject_, name);
    if (pixels && elements.kind == Stored::u8 && is_real(type.dtype)) elements.divisor = 255;
    const auto bytes = static_cast<uint64_t>(stored_kind(elements.kind).bytes * type.elements());
    const uint64_t most = std::max(kMostRawBytes / std::max<uint64_t>(bytes, 1), uint64_t{1});
    most_at_once_ = std::min<size_t>(most_at_once_, most);
    fields_.push_back({name, type});
    elements_.push_back(elements);
  }

  void check_known(const std::string& field) const {
    std::vector<std::string> known;
    for (const DataField& each : fields_) known.push_back(each.name);
    if (!std::count(known.begin(), known.end(), field))
      fail(ORR_INVALID, "{}: dtypes: there is no field '{}'; the dataset has {}", path_, field,
           join(known, ", "));
  }

  void read_some(std::span<const Pick> picks, const std::vector<std::byte*>& to) const {
    std::vector<int64_t> samples;
    for (const Pick& pick : picks) samples.push_back(pick.sample);
    std::vector<std::unique_ptr<Guarded>> raw(to.size());
    std::vector<void*> places(to.size());
    const auto count = [&](size_t f) {
      return picks.size() * static_cast<size_t>(fields_[f].sample.elements());
    };
    for (size_t f = 0; f < to.size(); ++f) {
      if (!to[f]) continue;
      raw[f] = std::make_unique<Guarded>(count(f) *
                                         static_cast<size_t>(stored_kind(elements_[f].kind).bytes));
      places[f] = raw[f]->bytes.get();
    }
    check(open_.api.read(open_.data, samples.data(), static_cast<int64_t>(samples.size()),
                         places.data()));
    for (size_t f = 0; f < to.size(); ++f) {
      if (!to[f]) continue;
      if (raw[f]->is_overrun())
        fail(ORR_FAILED, "{}: {}: field '{}' was written beyond the {} of {} samples", subject_,
             path_, fields_[f].name, to_string(fields_[f].sample), picks.size());
      convert_elements(elements_[f], raw[f]->bytes.get(), count(f), fields_[f].sample.dtype, to[f],
                       path_);
    }
  }

  std::string subject_, path_;
  Handle open_;
  std::vector<Elements> elements_;  // of the fields, as the plugin writes them
  size_t most_at_once_ = SIZE_MAX;  // samples that are read at once
  bool slow_ = true;
};

}  // namespace

DatasetPtr open_data(const std::string& format, const std::string& path, const Attrs& options,
                     const Dtypes& dtypes) {
  if (path.find('\0') != path.npos) fail(ORR_INVALID, "{}: its name holds a zero byte", path);
  return std::make_shared<Opened>(format, path, options, dtypes);
}

}  // namespace orrery
