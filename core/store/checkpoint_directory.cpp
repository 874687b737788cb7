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
#include <set>

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

// The number of a folder of data files; -1 for other names.
int64_t generation_of(const std::string& name) {
  const bool is_number = !name.empty() && name.size() <= 18 && name[0] != '0' &&
                         name.find_first_not_of("0123456789") == name.npos;
  return is_number ? std::stoll(name) : -1;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  return names;
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(const std::string& path, const std::string& lock_in,
                                         const std::string& label)
    : path_(path), lock_in_(lock_in), label_(label) {
  if (fs::exists(fs::symlink_status(path_))) check_replaceable();
  make_directories(path_);
  hold_writer_lock(lock_in_, label_);
  if (fs::exists(file(kManifestFile))) {
    File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
    old_ = read_manifest_text(manifest);
  }
  // A rank of a job whose rank 0 has died may still write to its folder: its name is not used
  // again.
  for (const std::string& name : names_in(path_))
    generation_ = std::max(generation_, generation_of(name) + 1);
  sweep();
}

CheckpointDirectory::~CheckpointDirectory() {
  try {
    sweep();
    if (fs::exists(file(kManifestFile))) return;
    if (lock_in_ == path_) drop_writer_lock(path_);
    fs::remove(path_);  // fails, as it should, if the directory is not empty
  } catch (const std::exception&) {
    // Files that cannot be removed stay; the next writer removes them.
  }
}

std::string CheckpointDirectory::folder() const {
  const std::string folder = file(std::to_string(generation_));
  make_directories(folder);
  return folder;
}

// Whether that is a folder with nothing but files of write_shard. Such folders stay where rank 0 of
// a job has failed and swept while another rank still wrote.
bool CheckpointDirectory::has_shards_only(const std::string& name) const {
  return fs::is_directory(file(name)) &&
         std::ranges::all_of(names_in(file(name)), [](const std::string& inner) {
           return inner.starts_with("shard-") && inner.ends_with(".safetensors");
         });
}

// Throws Error unless a save may replace what is there: an empty directory, one with a checkpoint
// and nothing else, or the files of a writer that died in its first save.
void CheckpointDirectory::check_replaceable() const {
  auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID, "{}: {}; save under another name", label_, why);
  };
  if (!fs::is_directory(path_)) refuse("there is something else of that name");
  bool locked = lock_in_ != path_, has_manifest = false;
  const std::vector<std::string> names = names_in(path_);
  for (const std::string& name : names) {
    has_manifest |= name == kManifestFile;
    locked |= name == kLockFile;
    if (generation_of(name) < 0 && name != kManifestFile && name != kNewManifest &&
        name != kLockFile)
      refuse(fmt::format("the directory holds '{}', which is not of a checkpoint", name));
  }
  if (!has_manifest) {
    if (!locked && !std::ranges::all_of(names, [&](auto& name) { return has_shards_only(name); }))
      refuse("the directory is not a checkpoint");
    return;
  }
  File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
  if (!looks_like_manifest(read_manifest_text(manifest)))
    refuse("the directory is not a checkpoint");
}

// Removes folders that the manifest does not name. If the manifest cannot be read, none is removed.
void CheckpointDirectory::sweep() const try {
  std::set<std::string> kept;
  if (fs::exists(file(kManifestFile))) {
    File manifest = File::open(AT_FDCWD, file(kManifestFile), label_, false);
    for (auto& [name, facts] : parse_manifest(read_manifest_text(manifest), label_).files)
      kept.insert(name.substr(0, name.find('/')));
  }
  for (const std::string& name : names_in(path_)) {
    if (name == kNewManifest) ::unlinkat(AT_FDCWD, file(name).c_str(), 0);
    if (generation_of(name) < 0 || kept.contains(name)) continue;
    for (const std::string& inner : names_in(file(name)))
      ::unlinkat(AT_FDCWD, file(name + "/" + inner).c_str(), 0);
    ::unlinkat(AT_FDCWD, file(name).c_str(), AT_REMOVEDIR);
  }
} catch (const Error&) {
}

void CheckpointDirectory::put(const std::string& manifest, bool last) const {
  {
    File fresh = File::create(file(kNewManifest), label_ + ": " + kNewManifest);
    fresh.write(manifest.data(), manifest.size());
    if (!last) fresh.finish();
  }
  if (!last) sync_directory(path_);  // makes the names of the data files durable
  hold_writer_lock(lock_in_, label_);
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

void CheckpointDirectory::remove() {
  if (::unlinkat(AT_FDCWD, file(kManifestFile).c_str(), 0) != 0 && errno != ENOENT)
    fail(ORR_FAILED, "{} cannot be removed: {}", label_, write_error(errno));
  sync_directory(path_);
}

}  // namespace orrery
