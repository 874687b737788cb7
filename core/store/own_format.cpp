// SPDX-License-Identifier: Apache-2.0
//
// Orrery's own format of checkpoints: safetensors files, and checkpoint.json.
#include <fcntl.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "store/checkpoint_format.h"
#include "store/file.h"
#include "store/manifest.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string manifest_in(const std::string& directory, const std::string& label) {
  return read_manifest_text(File::open(AT_FDCWD, directory + "/" + kManifestFile, label, false));
}

class OwnFormat : public CheckpointFormat {
 public:
  std::string manifest_file() const override { return kManifestFile; }
  std::string fresh_file() const override { return manifest_file() + ".new"; }
  bool is_begun(const std::string& text) const override { return begins_as_manifest(text); }
  bool is_checkpoint(const std::string& directory, const std::string& label) const override {
    return looks_like_manifest(manifest_in(directory, label));
  }
  std::set<std::string> files_in(const std::string& directory,
                                 const std::string& label) const override {
    std::set<std::string> paths;
    for (auto& [path, facts] : parse_manifest(manifest_in(directory, label), label).files)
      paths.insert(path);
    return paths;
  }

  std::string write(const ShardFolder& folder, int writer, const std::vector<ShardBox>& pieces,
                    const TensorTypes&) const override {
    return to_text(write_shard(folder, writer, pieces));
  }

  std::string manifest(const std::string& directory, const std::string& folder,
                       const CheckpointFacts& facts, const TensorTypes& tensors,
                       const std::vector<std::string>& texts) const override {
    const std::string inner = fs::path(folder).filename().string() + "/";
    Manifest manifest{facts, tensors, {}};
    std::map<std::string, int64_t> written;
    for (const std::string& text : texts)
      for (auto& [name, file] : orrery::files_in(text)) {
        manifest.files[inner + name] = file;
        for (auto& [tensor, elements] : file.elements) written[tensor] += elements;
      }
    check_complete(directory, tensors, written);
    return render_manifest(manifest);
  }

  std::unique_ptr<OpenCheckpoint> open(const std::string& directory) const override {
    return open_own_checkpoint(directory);
  }
};

}  // namespace

const CheckpointFormat& own_format() {
  static const OwnFormat format;
  return format;
}

}  // namespace orrery
