// SPDX-License-Identifier: Apache-2.0
//
// A data plugin that says of itself what cannot be: the option `lie` chooses.
#include <algorithm>

#include <orrery/sdk/tokenizer.hpp>

namespace {

class Lying : public orr::Dataset {
 public:
  explicit Lying(const std::string& lie) : more_(lie == "more") {
    fields = {{"x", {2}, "<f4"}};
    samples = 3;
    if (lie == "fields") fields.clear();
    if (lie == "samples") samples = 0;
    if (lie == "too many") samples = INT64_MAX;
    if (lie == "window") window = -1;
    if (lie == "elements") fields[0].elements = "<q4";
    if (lie == "name") fields[0].name = "";
    if (lie == "line end") fields[0].name = "x\n";
    if (lie == "twice") fields.push_back(fields[0]);
    if (lie == "dims") fields[0].dims = {-2};
    if (lie == "overflow") fields[0].dims = {int64_t{1} << 40, int64_t{1} << 40};
    if (lie == "dtype") fields[0].dtype = 99;
  }
  void read(const int64_t*, int64_t n, void* const* to) const override {
    if (more_) {
      std::fill_n(static_cast<float*>(to[0]), 2 * n + 1, 7.0f);
      return;
    }
    throw orr::Error(ORR_FAILED, "lying: there is nothing to read");
  }

 private:
  const bool more_;
};

class Ids : public orr::Tokenizer {
 public:
  int64_t vocab() const override { return 2; }
  std::vector<int32_t> encode(const std::string& text, const std::string&) const override {
    return {0, 1, static_cast<int32_t>(text.size())};
  }
  std::string decode(const std::vector<int64_t>&) const override { return ""; }
  void save(const std::string&) const override {}
};

std::unique_ptr<orr::Dataset> open(const std::string&, const orr::DataOptions& options) {
  const std::string lie = options.text("lie", "");
  return lie == "nothing" ? nullptr : std::make_unique<Lying>(lie);
}

std::unique_ptr<orr::Tokenizer> make(const std::string&, const std::string&,
                                     const orr::DataOptions&) {
  return std::make_unique<Ids>();
}

constexpr orr_data_api both() {
  orr_data_api t = orr::Reader<open>::table, of = orr::Tokenizers<make>::table;
  t.make = of.make, t.vocab = of.vocab, t.encode = of.encode;
  t.decode = of.decode, t.save = of.save, t.release = of.release;
  return t;
}
constexpr orr_data_api table = both();

}  // namespace

ORR_PLUGIN(ORR_KIND_DATA, "lying", "0.1.0", "What cannot be", orr::data_entry<table>, 1,
           {{"data", 1, 1}})
