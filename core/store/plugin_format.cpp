// SPDX-License-Identifier: Apache-2.0
//
// Formats of other programs, by the plugins that know them (orrery/checkpoint.h).
#include <fcntl.h>
#include <orrery/checkpoint.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "store/checkpoint_format.h"
#include "store/file.h"
#include "store/manifest.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

orr_tensor tensor_of(const Type& type) {
  orr_tensor tensor{};
  tensor.dtype = type.dtype, tensor.rank = static_cast<int32_t>(type.dims.size());
  std::copy(type.dims.begin(), type.dims.end(), tensor.dims);
  const Dims strides = row_major(type.dims);
  std::copy(strides.begin(), strides.end(), tensor.strides);
  return tensor;
}

// The boxes of one writer, as a plugin asks for them.
class GivenBoxes {
 public:
  GivenBoxes(const std::vector<ShardBox>& pieces, const TensorTypes& tensors)
      : pieces_(pieces), tensors_(tensors) {}
  orr_boxes table() { return {sizeof(orr_boxes), this, pieces_.size(), describe, bytes}; }

 private:
  static void describe(void* self, uint64_t number, orr_box* out) {
    const auto& boxes = *static_cast<GivenBoxes*>(self);
    const ShardBox& piece = boxes.pieces_[number];
    orr_box box{};
    box.size = std::min<uint32_t>(out->size, sizeof box), box.name = piece.name.c_str();
    box.whole = tensor_of(boxes.tensors_.at(piece.name));
    std::ranges::copy(piece.offset, box.offset);
    std::ranges::copy(piece.box.type.dims, box.dims);
    std::memcpy(out, &box, box.size);
  }
  static orr_status* bytes(void* self, uint64_t number, const void** out) {
    auto& boxes = *static_cast<GivenBoxes*>(self);
    return guarded([&] {
      boxes.held_ = boxes.pieces_[number].box.read();
      *out = boxes.held_.bytes->data();
    });
  }

  const std::vector<ShardBox>& pieces_;
  const TensorTypes& tensors_;
  HostTensor held_;
};

void give_bytes(void* to, const void* bytes, uint64_t count) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), count);
}

// What the names of a plugin's files begin with (own_files.h).
std::string prefix_of(const std::string& folder, int writer) {
  return fmt::format("{}/shard-{:05}-plugin-", folder, writer);
}

std::string manifest_text(const std::string& directory, const std::string& file) {
  const std::string label = fmt::format("checkpoint '{}': {}", directory, file);
  return read_manifest_text(File::open(AT_FDCWD, directory + "/" + file, label, true));
}

// A checkpoint that a plugin has opened.
class OfPlugin : public OpenCheckpoint {
 public:
  OfPlugin(const orr_checkpoint_api& api, const std::string& where) : api_(api) {
    directory = where, of_plugin = true;
    check(api.open(api.self, where.c_str(), &opened_));
    try {
      take_facts();
      take_tensors();
    } catch (...) {
      api.close(opened_);
      throw;
    }
  }
  ~OfPlugin() override { api_.close(opened_); }

  void read(const std::string& name, const Box& wanted, std::byte* to) const override {
    const int64_t size = orr_dtype_bytes(tensors.at(name).dtype);
    if (wanted.elements() == 0) return;
    const auto get = [&](std::byte* place) {
      check(api_.read(opened_, name.c_str(), wanted.offset.data(), wanted.shape.data(), place));
    };
    const Dims rows = row_major(wanted.shape);
    if (wanted.strides == rows) return get(to + wanted.at * size);
    std::vector<std::byte> box(static_cast<size_t>(wanted.elements() * size));
    get(box.data());
    copy_box(wanted.shape, size, box.data(), rows, to + wanted.at * size, wanted.strides);
  }

 private:
  void take_facts() {
    orr_run_facts given{};
    given.size = sizeof given;
    check(api_.facts(opened_, &given));
    facts = {given.step, given.microbatches, given.seed, given.extra ? given.extra : "",
             given.fast_sums != 0};
    if (facts.step < 0 || facts.microbatches < 0)
      fail(ORR_FAILED, "checkpoint '{}': it is of step {} with {} microbatches, which no run has",
           directory, facts.step, facts.microbatches);
  }
  void take_tensors() {
    const auto give = [](void* to, const char* name, const orr_tensor* type) {
      (*static_cast<TensorTypes*>(to))[name] = {type->dtype, {type->dims, type->dims + type->rank}};
    };
    check(api_.tensors(opened_, give, &tensors));
  }

  const orr_checkpoint_api& api_;
  orr_checkpoint* opened_ = nullptr;
};

class PluginFormat : public CheckpointFormat {
 public:
  explicit PluginFormat(const orr_checkpoint_api& api) : api_(api) {}

  std::string manifest_file() const override { return api_.manifest; }
  std::string fresh_file() const override { return manifest_file() + ".orrery-new"; }
  bool is_begun(const std::string&) const override { return true; }
  bool is_checkpoint(const std::string& directory, const std::string&) const override {
    return api_.serves(api_.self, directory.c_str()) != 0;
  }
  std::set<std::string> files_in(const std::string& directory, const std::string&) const override {
    std::set<std::string> paths;
    const auto give = [](void* to, const char* path) {
      static_cast<std::set<std::string>*>(to)->emplace(path);
    };
    check(api_.files(api_.self, directory.c_str(), give, &paths));
    return paths;
  }

  // How many elements of each tensor were written, and what the plugin says of its files.
  std::string write(const ShardFolder& folder, int writer, const std::vector<ShardBox>& given,
                    const TensorTypes& tensors) const override {
    std::vector<ShardBox> pieces = given;
    for (auto& [name, type] : tensors)  // so that the plugin knows of them
      if (writer == 0 && type.elements() == 0)
        pieces.push_back({name, Dims(type.dims.size(), 0), HostTensor::make(type)});
    std::map<std::string, int64_t> elements;
    for (const ShardBox& piece : pieces) elements[piece.name] += piece.box.type.elements();
    GivenBoxes boxes(pieces, tensors);
    const orr_boxes table = boxes.table();
    std::string text;
    check(api_.write(api_.self, prefix_of(folder.path, writer + 1).c_str(), &table, give_bytes,
                     &text));
    sync_directory(folder.path);
    return nlohmann::json{elements, text}.dump();
  }

  std::string manifest(const std::string& directory, const std::string& folder,
                       const CheckpointFacts& facts, const TensorTypes& tensors,
                       const std::vector<std::string>& texts) const override {
    std::map<std::string, int64_t> written;
    std::vector<std::string> theirs;
    std::vector<const char*> pointers;
    for (const std::string& text : texts) {
      const auto one = nlohmann::json::parse(text);
      for (auto& [name, count] : one[0].items()) written[name] += count.get<int64_t>();
      theirs.push_back(one[1]);
    }
    check_complete(directory, tensors, written);
    for (const std::string& text : theirs) pointers.push_back(text.c_str());
    const orr_run_facts given{sizeof given,       facts.fast_sums, facts.step,
                              facts.microbatches, facts.seed,      facts.extra.c_str()};
    std::string made;
    check(api_.complete(api_.self, prefix_of(folder, 0).c_str(), &given, pointers.data(),
                        pointers.size(), give_bytes, &made));
    sync_directory(folder);
    return made;
  }

  std::unique_ptr<OpenCheckpoint> open(const std::string& directory) const override {
    for (std::string text = manifest_text(directory, manifest_file());;) {
      auto opened = std::make_unique<OfPlugin>(api_, directory);
      // A writer may have replaced the checkpoint meanwhile.
      if (std::string now = manifest_text(directory, manifest_file()); now != text) {
        text = std::move(now);
        continue;
      }
      Digest of_text;
      of_text.add(text.data(), text.size());
      opened->digest = of_text.number();
      return opened;
    }
  }

 private:
  const orr_checkpoint_api& api_;
};

// By their names. A plugin that cannot be loaded has none.
std::map<std::string, PluginFormat> plugin_formats() {
  std::map<std::string, PluginFormat> formats;
  for (const orr_checkpoint_api* api : Registry::get().checkpoints())
    formats.try_emplace(api->format, *api);
  return formats;
}

}  // namespace

const CheckpointFormat& format_named(const std::string& name) {
  static std::map<std::string, PluginFormat> known;
  if (name.empty()) return own_format();
  known.merge(plugin_formats());
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  std::vector<std::string> names;
  for (auto& [each, format] : known) names.push_back("'" + each + "'");
  fail(ORR_INVALID,
       "no plugin writes checkpoints in a format '{}'; there are: {}; without a format they are "
       "Orrery's own",
       name, names.empty() ? "none" : join(names, ", "));
}

const CheckpointFormat& format_in(const std::string& directory) {
  std::error_code ignored;
  if (!is_address(directory) && !fs::exists(fs::path(directory) / kManifestFile, ignored))
    for (auto& [name, format] : plugin_formats())
      if (format.is_checkpoint(directory, "")) return format_named(name);
  return own_format();
}

}  // namespace orrery
