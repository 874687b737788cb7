// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tokenizers of data plugins in C++: an object of one class, made by one function.
#pragma once

#include <orrery/sdk/data.hpp>

namespace orr {

// See orr_data_api. [any thread]
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocab() const = 0;
  virtual std::vector<int32_t> encode(const std::string& text, const std::string& name) const = 0;
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  virtual void save(const std::string& directory) const = 0;
};

using MakeTokenizer = std::unique_ptr<Tokenizer>(const std::string& text, const std::string& name,
                                                 const DataOptions& options);

// The table of a plugin whose tokenizers `make` makes.
template <MakeTokenizer make>
struct Tokenizers {
  static Tokenizer& of(orr_tokenizer* tokenizer) {
    return *reinterpret_cast<Tokenizer*>(tokenizer);
  }

  static orr_status* make_one(void*, const orr_options* options, const char* text, int64_t bytes,
                              const char* name, orr_tokenizer** out) {
    return guard([&] {
      auto made = make({text, static_cast<size_t>(bytes)}, name, DataOptions(*options));
      *out = reinterpret_cast<orr_tokenizer*>(made.release());
    });
  }
  static int64_t vocab(orr_tokenizer* tokenizer) { return of(tokenizer).vocab(); }
  static orr_status* encode(orr_tokenizer* tokenizer, const char* text, int64_t bytes,
                            const char* name, orr_give_ids* give, void* to) {
    return guard([&] {
      const auto ids = of(tokenizer).encode({text, static_cast<size_t>(bytes)}, name);
      give(to, ids.data(), static_cast<int64_t>(ids.size()));
    });
  }
  static orr_status* decode(orr_tokenizer* tokenizer, const int64_t* ids, int64_t n,
                            orr_give_text* give, void* to) {
    return guard([&] {
      const std::string text = of(tokenizer).decode({ids, ids + n});
      give(to, text.data(), static_cast<int64_t>(text.size()));
    });
  }
  static orr_status* save(orr_tokenizer* tokenizer, const char* directory) {
    return guard([&] { of(tokenizer).save(directory); });
  }
  static void release(orr_tokenizer* tokenizer) { delete &of(tokenizer); }

  static constexpr orr_data_api make_table() {
    orr_data_api t{};
    t.size = sizeof t, t.make = make_one, t.vocab = vocab, t.encode = encode;
    t.decode = decode, t.save = save, t.release = release;
    return t;
  }
  static constexpr orr_data_api table = make_table();
  static constexpr orr_entry entry = data_entry<table>;
};

}  // namespace orr
