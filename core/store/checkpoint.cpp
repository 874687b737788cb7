// SPDX-License-Identifier: Apache-2.0
#include "store/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "store/file.h"
#include "store/manifest.h"
#include "store/staged_directory.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostManifestBytes = 64 << 20;
constexpr const char* kRemedy = "; restore the checkpoint from a copy or load an earlier one";

std::string label_of(const std::string& directory, const std::string& file) {
  return fmt::format("checkpoint '{}': {}", directory, file);
}

std::string read_manifest_text(const File& file) {
  if (file.size() > kMostManifestBytes)
    fail(ORR_FAILED, "{} has {} bytes, more than any manifest{}", file.label(), file.size(),
         kRemedy);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

// What a save may delete: nothing, an empty directory, or a checkpoint and only that.
void check_replaceable(const std::string& directory, const fs::path& path) {
  if (!fs::exists(fs::symlink_status(path))) return;
  auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID, "checkpoint '{}': {}; save under another name", directory, why);
  };
  if (!fs::is_directory(path)) refuse("there is something else of that name");
  static const std::set<std::string> ours = {kManifestFile, kModelFile, kOptimizerFile};
  for (const auto& entry : fs::directory_iterator(path))
    if (!ours.contains(entry.path().filename()))
      refuse(fmt::format("the directory holds '{}', which is not of a checkpoint",
                         entry.path().filename().string()));
  if (fs::is_empty(path)) return;
  if (!fs::exists(path / kManifestFile)) refuse("the directory is not a checkpoint");
  File manifest =
      File::open(AT_FDCWD, path / kManifestFile, label_of(directory, kManifestFile), false);
  if (!looks_like_manifest(read_manifest_text(manifest)))
    refuse("the directory is not a checkpoint");
}

// weakly_canonical: a checkpoint reached through a link is swapped where it lies.
fs::path place_of(const std::string& directory) {
  if (directory.empty()) fail(ORR_INVALID, "a checkpoint needs the name of a directory; give one");
  fs::path path = fs::weakly_canonical(fs::absolute(directory));
  return path.has_filename() ? path : path.parent_path();
}

void check_names(const std::vector<NamedTensor>& tensors) {
  std::set<std::string> names;
  for (const NamedTensor& t : tensors)
    if (!names.insert(t.name).second)
      fail(ORR_INVALID, "two tensors of a checkpoint are named '{}'; rename one of them", t.name);
}

FileFacts write_tensors(const StagedDirectory& stage, const std::string& directory,
                        const std::string& name, NamedTensors tensors) {
  File file = File::create(stage.path() + "/" + name, label_of(directory, name));
  write_safetensors(file, std::move(tensors));
  file.finish();
  return {file.size(), file.digest()};
}

void save(const std::string& directory, const CheckpointFacts& facts,
          const std::vector<NamedTensor>& tensors) {
  check_names(tensors);
  fs::path path = place_of(directory);
  check_replaceable(directory, path);
  std::map<std::string, NamedTensors> files = {{kModelFile, {}}, {kOptimizerFile, {}}};
  for (const NamedTensor& t : tensors)
    files[t.parameter ? kModelFile : kOptimizerFile].emplace_back(t.name, t.tensor);

  StagedDirectory stage(path);
  Manifest manifest{facts, {}};
  for (auto& [name, content] : files)
    manifest.files[name] = write_tensors(stage, directory, name, std::move(content));
  File file = File::create(stage.path() + "/" + kManifestFile, label_of(directory, kManifestFile));
  std::string text = render_manifest(manifest);
  file.write(text.data(), text.size());
  file.finish();
  stage.commit();
}

void load_tensors(const File& file, const FileFacts& expected, LoadedCheckpoint& into) {
  if (file.size() < expected.bytes)
    fail(ORR_FAILED, "{} is truncated: {} of {} bytes{}", file.label(), file.size(), expected.bytes,
         kRemedy);
  if (file.size() > expected.bytes)
    fail(ORR_FAILED, "{} has {} bytes after the {} that were saved{}", file.label(),
         file.size() - expected.bytes, expected.bytes, kRemedy);
  SafetensorsContents contents = read_safetensors(file);
  if (contents.digest != expected.digest)
    fail(ORR_FAILED, "{} was altered: its digest is {} instead of {}{}", file.label(),
         contents.digest, expected.digest, kRemedy);
  into.tensors.merge(contents.tensors);
  if (!contents.tensors.empty())
    fail(ORR_FAILED, "{}: tensor '{}' is also in {}{}", file.label(),
         contents.tensors.begin()->first, kModelFile, kRemedy);
}

// The directory, held open: names inside it stay of one checkpoint while another is swapped in.
class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& directory)
      : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0)
      fail(ORR_FAILED, "checkpoint '{}' cannot be opened: {}; check the path", directory,
           std::generic_category().message(errno));
  }
  ~OpenDirectory() { ::close(fd_); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

void sort_for_checkpoint(std::vector<NamedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    if (a.parameter != b.parameter) return a.parameter;
    return earlier_in_file(a.name, a.tensor.type, b.name, b.tensor.type);
  });
}

void save_checkpoint(const std::string& directory, const CheckpointFacts& facts,
                     const std::vector<NamedTensor>& tensors) {
  try {
    save(directory, facts, tensors);
  } catch (const fs::filesystem_error& e) {
    fail(ORR_FAILED, "checkpoint '{}' cannot be saved: {}", directory,
         write_error(e.code().value()));
  }
}

LoadedCheckpoint load_checkpoint(const std::string& directory) {
  OpenDirectory at(directory);
  auto open = [&](const char* name) {
    return File::open(at.fd(), name, label_of(directory, name), false);
  };
  // All are opened first: a writer that replaces this checkpoint removes its names, not its files.
  File manifest_file = open(kManifestFile), model = open(kModelFile);
  File optimizer = open(kOptimizerFile);
  Manifest manifest = parse_manifest(read_manifest_text(manifest_file), manifest_file.label());
  LoadedCheckpoint loaded{manifest.facts, {}};
  load_tensors(model, manifest.files.at(kModelFile), loaded);
  load_tensors(optimizer, manifest.files.at(kOptimizerFile), loaded);
  return loaded;
}

}  // namespace orrery
