// SPDX-License-Identifier: Apache-2.0
//
// A data plugin: files that it refuses or reads, whatever they hold, in any order, from several
// threads, and beside other memory. Options have their fallbacks.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <future>
#include <optional>
#include <random>

#include "base/error.h"
#include "conformance/growth.h"
#include "conformance/loaded.h"
#include "conformance/scripts.h"
#include "store/stored.h"

namespace orrery::judge {
namespace {

constexpr char kOther = 0x5a;  // what memory behind the samples holds

// Options that a script leaves out, for their fallbacks.
orr_options no_options() {
  orr_options options{};
  options.integer = [](const void*, const char*, int64_t fallback) { return fallback; };
  options.real = [](const void*, const char*, double fallback) { return fallback; };
  options.text = [](const void*, const char*, const char* fallback) { return fallback; };
  return options;
}

// The value of `name` among words such as "width=4".
const char* given(const void* self, const char* name) {
  for (const std::string& word : *static_cast<const std::vector<std::string>*>(self))
    if (word.starts_with(std::string(name) + "=")) return word.c_str() + std::strlen(name) + 1;
  return nullptr;
}

// The options that the user gives with a file. REQUIRES: `words` outlive them.
orr_options options_of(const std::vector<std::string>& words) {
  orr_options options{};
  options.self = &words;
  options.integer = [](const void* self, const char* name, int64_t fallback) {
    const char* text = given(self, name);
    return text ? int64_t{std::atoll(text)} : fallback;
  };
  options.real = [](const void* self, const char* name, double fallback) {
    const char* text = given(self, name);
    return text ? std::atof(text) : fallback;
  };
  options.text = [](const void* self, const char* name, const char* fallback) {
    const char* text = given(self, name);
    return text ? text : fallback;
  };
  return options;
}

// A dataset, or what the plugin says instead of giving one.
class Opened {
 public:
  Opened(const orr_data_api& api, const std::string& path,
         const orr_options& options = no_options())
      : api_(api) {
    orr_status* status = api.open(api.self, path.c_str(), &options, &data);
    if (!status && data) return;
    data = nullptr;
    refusal = host_table().error_message(status);
    host_table().error_release(status);
    if (refusal.empty())
      throw Fault("data.h: open", "a dataset, or an error in words", status ? "''" : "neither");
  }
  ~Opened() {
    if (data) api_.close(data);
  }
  Opened(const Opened&) = delete;

  // Bytes of one sample of each field.
  std::vector<size_t> describe(Fit fit) const {
    const Guarded<orr_data_info> info({}, fit);
    check(api_.info(data, info.get()));
    if (info->n_fields < 1 || info->samples < 1)
      throw Fault("data.h: orr_data_info", "at least one field and one sample",
                  fmt::format("{} and {}", info->n_fields, info->samples));
    std::vector<size_t> bytes;
    bool intact = info.tail_intact();
    for (int32_t i = 0; i < info->n_fields; ++i) {
      const Guarded<orr_data_field> field({}, fit);
      check(api_.field(data, i, field.get()));
      bytes.push_back(bytes_of(*field.get()));
      intact = intact && field.tail_intact();
    }
    if (!intact)
      throw Fault("data.h: \"write no field behind that\"", "nothing behind `size`",
                  "bytes of a newer host's were overwritten");
    return bytes;
  }
  orr_data_info info() const {
    orr_data_info info{};
    info.size = sizeof info;
    check(api_.info(data, &info));
    return info;
  }
  orr_data_field field(int32_t f) const {
    orr_data_field field{};
    field.size = sizeof field;
    check(api_.field(data, f, &field));
    return field;
  }

  // The bytes of these samples, field by field, in memory that holds `before`.
  std::string read(const std::vector<int64_t>& samples, const std::vector<size_t>& bytes,
                   char before = 0) const {
    std::vector<std::string> fields;
    std::vector<void*> to;
    for (size_t each : bytes) {
      fields.emplace_back(samples.size() * each, before);
      fields.back().append(64, kOther);
    }
    for (std::string& field : fields) to.push_back(field.data());
    check(api_.read(data, samples.data(), static_cast<int64_t>(samples.size()), to.data()));
    std::string all;
    for (size_t f = 0; f < fields.size(); ++f) {
      const size_t end = samples.size() * bytes[f];
      if (fields[f].substr(end) != std::string(64, kOther))
        throw Fault("data.h: read", "nothing written behind the samples", "other bytes there");
      all += fields[f].substr(0, end);
    }
    return all;
  }

  orr_data* data = nullptr;
  std::string refusal;  // if there is no dataset

 private:
  static size_t bytes_of(const orr_data_field& field) {
    const std::optional<Elements> elements =
        elements_by_numpy(field.elements ? field.elements : "");
    if (!elements || !field.name || !*field.name || field.rank < 0 || field.rank > ORR_MAX_RANK)
      throw Fault("data.h: orr_data_field", "a name, elements that NumPy knows, at most 8 dims",
                  fmt::format("'{}', '{}', {}", field.name ? field.name : "",
                              field.elements ? field.elements : "", field.rank));
    auto bytes = static_cast<size_t>(stored_kind(elements->kind).bytes);
    for (int32_t i = 0; i < field.rank; ++i) bytes *= static_cast<size_t>(field.dims[i]);
    return bytes;
  }

  const orr_data_api& api_;
};

const orr_data_api& data_of(const Subject& subject) {
  return registry_with(subject).data(subject.name());
}

// The user's file, which it must open.
void with_own_file(const Subject& subject, const std::function<void(const Opened&)>& look) {
  if (subject.file.empty()) return;
  const std::vector<std::string> words(subject.file.begin() + 1, subject.file.end());
  const Opened set(data_of(subject), subject.file.front(), options_of(words));
  if (!set.data) throw Fault("data.h: open", "a dataset of --file", set.refusal);
  look(set);
}

// Files of random bytes, of which it may open some.
void with_files(const Subject& subject, const std::function<void(const std::string&)>& look) {
  const ScratchDirectory directory;
  const std::string path = (directory.path() / "random").string();
  std::mt19937_64 random(subject.seed);
  for (int round = 0; round < 50; ++round) {
    std::string bytes(random() % 500 * 8, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << bytes;
    look(path);
  }
}

void missing(const Subject& subject) {
  const ScratchDirectory directory;
  const orr_data_api& api = data_of(subject);
  for (const char* path : {"/proc/no such file", "/dev/null", ""}) const Opened opened(api, path);
  const Opened opened(api, directory.path().string());
}

void describe(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const auto& api = plugin.table<orr_data_api>(ORR_KIND_DATA);
  with_files(subject, [&](const std::string& path) {
    const Opened opened(api, path);
    if (opened.data) opened.describe(fit);
  });
}
void exact_structs(const Subject& subject) { describe(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { describe(subject, Fit::kLonger); }

// Where samples do not fill their memory, it keeps what it held before.
void expect_all_written(const Opened& opened, const std::vector<int64_t>& samples,
                        const std::vector<size_t>& bytes) {
  if (opened.read(samples, bytes, 0) != opened.read(samples, bytes, 1))
    throw Fault("data.h: \"Writes n samples of every field f\"", "the same bytes at every read",
                "others, or memory that is not written");
}

// Samples that are called windows of tokens: each is the one before it, shifted by one token.
void expect_windows(const Opened& opened, const std::vector<size_t>& bytes) {
  const orr_data_info info = opened.info();
  const int64_t pairs = info.window > 0 ? std::min<int64_t>(info.samples - 1, 100) : 0;
  for (int64_t i = 0; i < pairs; ++i) {
    const std::string here = opened.read({i}, bytes), next = opened.read({i + 1}, bytes);
    size_t at = 0, token = 0;
    for (int32_t f = 0; f < info.n_fields; at += bytes[static_cast<size_t>(f++)]) {
      const orr_data_field field = opened.field(f);
      if (field.rank != 1 || field.dims[0] != info.window) continue;
      token = bytes[static_cast<size_t>(f)] / static_cast<size_t>(info.window);
      const size_t rest = bytes[static_cast<size_t>(f)] - token;
      if (next.substr(at, rest) != here.substr(at + token, rest))
        throw Fault("data.h: window", "sample i + 1 is sample i shifted by one token",
                    fmt::format("samples {} and {} of '{}' are not", i, i + 1, field.name));
    }
    if (token == 0)
      throw Fault("data.h: window", fmt::format("a field of {} tokens", info.window), "none");
  }
}

// The last sample first, on four threads; then all at once.
void compare(const Opened& opened) {
  const std::vector<size_t> bytes = opened.describe(Fit::kExact);
  std::vector<int64_t> samples(static_cast<size_t>(std::min<int64_t>(opened.info().samples, 100)));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<int64_t>(i);
  expect_all_written(opened, samples, bytes);
  expect_windows(opened, bytes);
  const auto single = [&] {
    std::string all;
    for (size_t i = samples.size(); i-- > 0;) all += opened.read({samples[i]}, bytes);
    return all;
  };
  std::vector<std::future<std::string>> threads;
  for (int i = 0; i < 4; ++i) threads.push_back(std::async(std::launch::async, single));
  std::vector<std::string> read;
  for (auto& thread : threads) read.push_back(thread.get());
  std::string each;
  for (size_t i = samples.size(); i-- > 0;) {
    size_t at = 0;
    const std::string all = opened.read(samples, bytes);
    for (size_t field : bytes)
      each += all.substr(at + i * field, field), at += samples.size() * field;
  }
  for (const std::string& of_thread : read)
    if (of_thread != each)
      throw Fault("data.h: read", "the same bytes of a sample alone and among others", "others");
}

void samples(const Subject& subject) {
  const orr_data_api& api = data_of(subject);
  int opened = 0;
  with_own_file(subject, [&](const Opened& set) { compare(set), ++opened; });
  with_files(subject, [&](const std::string& path) {
    const Opened set(api, path);
    if (set.data) compare(set), ++opened;
  });
  if (!opened)
    throw Skip("random bytes are no files of its format: name one by --file PATH option=value...");
}

// The plugin reads, or has tokenizers, with all functions of that.
void slots(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  orr_data_api table{};
  if (const void* given = plugin.get("data", 1)) {
    uint32_t size = 0;
    std::memcpy(&size, given, sizeof size);
    std::memcpy(&table, given, std::min<size_t>(size, sizeof table));
  }
  const bool reads = table.open && table.info && table.field && table.read && table.close;
  const bool splits = table.make && table.vocab && table.encode && table.decode && table.release;
  if (!reads && !splits)
    throw Fault("data.h: orr_data_api", "all functions of a reader or of a tokenizer",
                "neither are all inside of `size`");
}

// Of one that learns from a text, without options: ids of its vocabulary, and the text again.
void tokens(const Subject& subject) {
  const orr_data_api& api = data_of(subject);
  const std::string text = "The quick brown fox, a na\u00efve caf\u00e9, 12345\n  and  blanks\n";
  const auto bytes = static_cast<int64_t>(text.size());
  const orr_options options = no_options();
  orr_tokenizer* tokenizer = nullptr;
  if (orr_status* status =
          api.make(api.self, &options, text.data(), bytes, "the text", &tokenizer)) {
    const std::string words = host_table().error_message(status);
    host_table().error_release(status);
    throw Skip("it learns nothing without options: " + words);
  }
  std::vector<int64_t> ids;
  const auto keep = [](void* to, const int32_t* given, int64_t n) {
    static_cast<std::vector<int64_t>*>(to)->insert(static_cast<std::vector<int64_t>*>(to)->end(),
                                                   given, given + n);
  };
  check(api.encode(tokenizer, text.data(), bytes, "the text", keep, &ids));
  const int64_t most = api.vocab(tokenizer);
  if (std::any_of(ids.begin(), ids.end(), [&](int64_t id) { return id < 0 || id >= most; }))
    throw Fault("data.h: \"they are 0..vocab-1\"", "ids of the vocabulary", "others");
  std::string again;
  const auto append = [](void* to, const char* given, int64_t n) {
    static_cast<std::string*>(to)->append(given, static_cast<size_t>(n));
  };
  check(api.decode(tokenizer, ids.data(), static_cast<int64_t>(ids.size()), append, &again));
  api.release(tokenizer);
  if (again != text) throw Fault("data.h: \"Text as ids, and back\"", text, again);
}

void leaks(const Subject& subject) {
  const orr_data_api& api = data_of(subject);
  const ScratchDirectory directory;
  const std::string path = (directory.path() / "zeros").string();
  std::ofstream(path, std::ios::binary) << std::string(4096, '\0');
  const std::string grown = growth([&] {
    const Opened opened(api, path);
    with_own_file(subject, [](const Opened&) {});
  });
  if (!grown.empty())
    throw Fault("data.h: close", "opening that keeps nothing", "each keeps " + grown);
}

}  // namespace

std::vector<Test> data_tests() {
  return {{"data.slots", 10, slots},
          {"data.missing", 10, missing},
          {"data.exact_structs", 10, exact_structs},
          {"data.longer_structs", 10, longer_structs},
          {"data.samples", 30, samples},
          {"data.tokens", 10, tokens},
          {"data.leaks", 30, leaks}};
}

}  // namespace orrery::judge
