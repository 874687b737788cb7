// SPDX-License-Identifier: Apache-2.0
#include "data/made_tokenizer.h"

#include "base/error.h"
#include "data/asked_options.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

int64_t size_of(const std::string& text) { return static_cast<int64_t>(text.size()); }

class OfPlugin : public Tokenizer {
 public:
  OfPlugin(const std::string& plugin, const Attrs& options, const std::string& text,
           const std::string& name)
      : api_(Registry::get().data(plugin)) {
    const AskedOptions asked(options);
    const orr_options table = asked.table();
    orr_tokenizer* made = nullptr;
    orr_status* status =
        api_.make(api_.self, &table, text.data(), size_of(text), name.c_str(), &made);
    if (!status) made_ = {made, api_.release};
    asked.check_call(status, plugin);
    if (!made) fail(ORR_FAILED, "data '{}': make gave no tokenizer", plugin);
  }

  int64_t vocab() const override { return api_.vocab(made_.get()); }
  std::vector<int32_t> encode(const std::string& text, const std::string& name) const override {
    std::vector<int32_t> all;
    const auto give = [](void* to, const int32_t* ids, int64_t n) {
      auto& found = *static_cast<std::vector<int32_t>*>(to);
      found.insert(found.end(), ids, ids + n);
    };
    check(api_.encode(made_.get(), text.data(), size_of(text), name.c_str(), give, &all));
    check_ids(all);
    return all;
  }
  std::string decode(const std::vector<int64_t>& ids) const override {
    std::string all;
    const auto give = [](void* to, const char* text, int64_t bytes) {
      static_cast<std::string*>(to)->append(text, static_cast<size_t>(bytes));
    };
    check(api_.decode(made_.get(), ids.data(), static_cast<int64_t>(ids.size()), give, &all));
    return all;
  }
  void save(const std::string& directory) const override {
    check(api_.save(made_.get(), directory.c_str()));
  }

 private:
  // An id outside of the vocabulary would train another row, or none.
  void check_ids(const std::vector<int32_t>& ids) const {
    const int64_t most = vocab();
    for (int32_t id : ids)
      if (id < 0 || id >= most)
        fail(ORR_FAILED, "the tokenizer gives the id {}, outside 0..{}", id, most - 1);
  }

  const orr_data_api& api_;
  std::unique_ptr<orr_tokenizer, void (*)(orr_tokenizer*)> made_{nullptr, nullptr};
};

}  // namespace

std::shared_ptr<const Tokenizer> plugin_tokenizer(const std::string& plugin, const Attrs& options,
                                                  const std::string& text,
                                                  const std::string& name) {
  return std::make_shared<OfPlugin>(plugin, options, text, name);
}

}  // namespace orrery
