// SPDX-License-Identifier: Apache-2.0
//
// Bad readers.
#include "fault.h"
#include "good_data.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <orrery/sdk/tokenizer.hpp>

namespace {

orr_status* bad_open(void* self, const char* path, const orr_options* options, orr_data** out) {
  orr_status* status = Table::open_data(self, path, options, out);
  if (fault("fails_without_words") && status) return orr::host->error(ORR_FAILED, "");
  if (fault("leaks_per_dataset")) leak(64);
  return status;
}

orr_status* bad_info(orr_data* data, orr_data_info* out) {
  if (fault("assigns_whole_structs")) {
    struct Newer {
      orr_data_info known;
      int64_t more[8];
    } newer{};
    newer.known.size = out->size;
    std::memcpy(static_cast<void*>(out), &newer, sizeof newer);
  }
  orr_status* status = Table::info(data, out);
  if (fault("calls_samples_windows")) out->window = 2;
  return status;
}

orr_status* bad_read(orr_data* data, const int64_t* samples, int64_t n, void* const* to) {
  if (fault("leaves_the_last_sample_out")) return Table::read(data, samples, n - 1, to);
  orr_status* status = Table::read(data, samples, n, to);
  if (fault("reads_the_first_again") && n > 1) {
    const std::vector<int64_t> first(static_cast<size_t>(n), samples[0]);
    return Table::read(data, first.data(), n, to);
  }
  if (fault("writes_behind") && to[0]) std::memset(static_cast<char*>(to[0]) + 4 * n, 0, 4);
  return status;
}

// A token for each byte; the text that it gives back has no blanks.
class Bytes : public orr::Tokenizer {
 public:
  int64_t vocab() const override { return fault("gives_ids_beyond_its_vocabulary") ? 100 : 256; }
  std::vector<int32_t> encode(const std::string& text, const std::string&) const override {
    return {reinterpret_cast<const unsigned char*>(text.data()),
            reinterpret_cast<const unsigned char*>(text.data() + text.size())};
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string text;
    for (int64_t id : ids)
      if (id != ' ') text += static_cast<char>(id);
    return text;
  }
  void save(const std::string&) const override {}
};

std::unique_ptr<orr::Tokenizer> make_bytes(const std::string&, const std::string&,
                                           const orr::DataOptions&) {
  return std::make_unique<Bytes>();
}

orr_data_api bad_table() {
  if (fault("decodes_another_text") || fault("gives_ids_beyond_its_vocabulary"))
    return orr::Tokenizers<make_bytes>::table;
  orr_data_api bad = Table::table;
  bad.open = bad_open, bad.info = bad_info;
  bad.read = fault("misses_a_slot") ? nullptr : bad_read;
  return bad;
}

const orr_data_api bad = bad_table();

orr_status* bad_entry(const orr_bootstrap* boot, orr_exports* out) {
  Table::entry(boot, out);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "data" && version == 1 ? &bad : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_DATA, FAULT_NAME, "0.1.0", "A bad reader", bad_entry, 1, {{"data", 1, 1}})
