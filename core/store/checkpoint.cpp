// SPDX-License-Identifier: Apache-2.0
#include "store/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "store/checkpoint_directory.h"
#include "store/digest.h"
#include "store/file.h"
#include "store/manifest.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = "; restore the checkpoint from a copy or load an earlier one";

std::string label_of(const std::string& directory, const std::string& file) {
  return fmt::format("checkpoint '{}': {}", directory, file);
}

// The directory's path without symbolic links, so that a checkpoint that is named by a link is
// replaced in its real place.
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

void save(const std::string& directory, const CheckpointFacts& facts,
          const std::vector<NamedTensor>& tensors) {
  check_names(tensors);
  std::map<std::string, NamedTensors> kinds = {{"model", {}}, {"optimizer", {}}};
  for (const NamedTensor& t : tensors)
    kinds[t.parameter ? "model" : "optimizer"].emplace_back(t.name, t.tensor);

  CheckpointDirectory place(place_of(directory), fmt::format("checkpoint '{}'", directory));
  Manifest manifest{facts, {}};
  for (auto& [kind, content] : kinds) {
    const std::string name = place.name_for(kind);
    File file = File::create(place.path() + "/" + name, label_of(directory, name));
    write_safetensors(file, std::move(content));
    file.finish();
    manifest.files[name] = {file.size(), file.digest()};
  }
  place.commit(render_manifest(manifest));
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
    fail(ORR_FAILED, "{}: tensor '{}' is also in another file{}", file.label(),
         contents.tensors.begin()->first, kRemedy);
}

// Keeps the directory open, so that files opened by name in it belong to the same checkpoint even
// if the directory is renamed meanwhile.
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

std::string manifest_text(const OpenDirectory& at, const std::string& directory) {
  return read_manifest_text(
      File::open(at.fd(), kManifestFile, label_of(directory, kManifestFile), false));
}

LoadedCheckpoint load(const OpenDirectory& at, const std::string& directory,
                      const std::string& text) {
  const Manifest manifest = parse_manifest(text, label_of(directory, kManifestFile));
  LoadedCheckpoint loaded{manifest.facts, {}, 0};
  for (auto& [name, facts] : manifest.files)
    load_tensors(File::open(at.fd(), name, label_of(directory, name), false), facts, loaded);
  Digest digest;
  digest.add(text.data(), text.size());
  loaded.digest = digest.number();
  return loaded;
}

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
  constexpr int most_tries = 20;
  const OpenDirectory at(directory);
  for (int tries = 1;; ++tries) {
    const std::string text = manifest_text(at, directory);
    try {
      return load(at, directory, text);
    } catch (const Error&) {
      // A writer that has replaced the checkpoint meanwhile has removed these files: try again.
      if (tries == most_tries || manifest_text(at, directory) == text) throw;
    }
  }
}

}  // namespace orrery
