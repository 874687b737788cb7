// SPDX-License-Identifier: Apache-2.0
#include "store/checkpoint_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <regex>

#include "base/error.h"
#include "store/file.h"
#include "store/manifest.h"
#include "store/writer_lock.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNewManifest = "checkpoint.json.new";

void make_directories(const fs::path& directory) {
  if (fs::exists(directory)) return;
  make_directories(directory.parent_path());
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", directory.string(),
         write_error(errno));
  sync_directory(directory.parent_path());
}

// 7 for model.7.safetensors, 0 for model.safetensors (of version 1), -1 for other names.
int64_t generation_of(const std::string& name) {
  static const std::regex pattern(R"((model|optimizer)(\.([1-9][0-9]{0,17}))?\.safetensors)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) return -1;
  return match[3].matched ? std::stoll(match[3].str()) : 0;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(const std::string& path, const std::string& label)
    : path_(path), label_(label) {
  if (fs::exists(fs::symlink_status(path_))) check_replaceable();
  make_directories(path_);
  hold_writer_lock(path_, label_);
  if (fs::exists(file(kManifestFile))) {
    File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
    old_ = read_manifest_text(manifest);
  }
  sweep();
  for (const std::string& name : names_in(path_))
    generation_ = std::max(generation_, generation_of(name) + 1);
}

CheckpointDirectory::~CheckpointDirectory() {
  try {
    sweep();
    if (fs::exists(file(kManifestFile))) return;
    drop_writer_lock(path_);
    fs::remove(path_);  // fails, as it should, if the directory is not empty
  } catch (const std::exception&) {
    // Files that cannot be removed stay; the next writer removes them.
  }
}

std::string CheckpointDirectory::name_for(const std::string& kind) const {
  return fmt::format("{}.{}.safetensors", kind, generation_);
}

// Throws Error unless a save may replace what is there: an empty directory, one with a checkpoint
// and nothing else, or the files of a writer that died in its first save.
void CheckpointDirectory::check_replaceable() const {
  auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID, "{}: {}; save under another name", label_, why);
  };
  if (!fs::is_directory(path_)) refuse("there is something else of that name");
  bool locked = false, numbered = true, has_manifest = false;
  const std::vector<std::string> names = names_in(path_);
  for (const std::string& name : names) {
    const int64_t generation = generation_of(name);
    has_manifest |= name == kManifestFile;
    locked |= name == kLockFile;
    numbered &= generation != 0;
    if (generation < 0 && name != kManifestFile && name != kNewManifest && name != kLockFile)
      refuse(fmt::format("the directory holds '{}', which is not of a checkpoint", name));
  }
  if (!has_manifest && !names.empty() && !(locked && numbered))
    refuse("the directory is not a checkpoint");
  if (!has_manifest) return;
  File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
  if (!looks_like_manifest(read_manifest_text(manifest)))
    refuse("the directory is not a checkpoint");
}

// Removes data files that the manifest does not name. If the manifest cannot be read, none is
// removed.
void CheckpointDirectory::sweep() const try {
  std::map<std::string, FileFacts> kept;
  if (fs::exists(file(kManifestFile))) {
    File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
    kept = parse_manifest(read_manifest_text(manifest), label_).files;
  }
  for (const std::string& name : names_in(path_))
    if (name == kNewManifest || (generation_of(name) >= 0 && !kept.contains(name)))
      ::unlinkat(AT_FDCWD, file(name).c_str(), 0);
} catch (const Error&) {
}

void CheckpointDirectory::put(const std::string& manifest, bool last) const {
  {
    File fresh = File::create(file(kNewManifest), label_ + ": " + kNewManifest);
    fresh.write(manifest.data(), manifest.size());
    if (!last) fresh.finish();
  }
  if (!last) sync_directory(path_);  // makes the names of the data files durable
  hold_writer_lock(path_, label_);
  if (::rename(file(kNewManifest).c_str(), file(kManifestFile).c_str()) != 0)
    fail(ORR_FAILED, "{}: {} cannot be put in place: {}", label_, kManifestFile,
         write_error(errno));
}

void CheckpointDirectory::commit(const std::string& manifest) {
  put(manifest);
  try {
    sync_directory(path_);
  } catch (const Error&) {
    if (old_)
      put(*old_, true);
    else
      ::unlinkat(AT_FDCWD, file(kManifestFile).c_str(), 0);
    throw;
  }
}

}  // namespace orrery
