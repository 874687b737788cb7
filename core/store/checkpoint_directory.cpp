// SPDX-License-Identifier: Apache-2.0
#include "store/checkpoint_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "store/file.h"
#include "store/manifest.h"
#include "store/writer_lock.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// Whether there is something of that name, be it a link that leads nowhere.
bool is_there(const fs::path& path) { return fs::exists(fs::symlink_status(path)); }

// Returns whether there was no such directory.
bool make_directories(const fs::path& directory) {
  if (fs::exists(directory)) return false;
  make_directories(directory.parent_path());
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", directory.string(),
         write_error(errno));
  sync_directory(directory.parent_path());
  return true;
}

// The number of a folder of data files; -1 for other names.
int64_t generation_of(const std::string& name) {
  const bool is_number = !name.empty() && name.size() <= 18 && name[0] != '0' &&
                         name.find_first_not_of("0123456789") == name.npos;
  return is_number ? std::stoll(name) : -1;
}

std::string text_in(const std::string& directory, const std::string& label,
                    const std::string& name) {
  return read_manifest_text(File::open(AT_FDCWD, directory + "/" + name, label, false));
}

// Whether that is a manifest that a writer of ours has begun.
bool is_begun_manifest(const CheckpointFormat& format, const std::string& directory,
                       const std::string& label) try {
  return format.is_begun(text_in(directory, label, format.fresh_file()));
} catch (const Error&) {
  return false;
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(const std::string& path, const std::string& lock_in,
                                         const std::string& label, const CheckpointFormat& format)
    : path_(path), lock_in_(lock_in), label_(label), format_(format) {
  replace_link();
  if (is_there(path_)) check_replaceable();
  made_ = make_directories(path_);
  hold_writer_lock(lock_in_, label_);
  own_.emplace(path_, label_);
  note_replaced();
  // A rank of a job whose rank 0 has died may still write to its folder: its name is not used
  // again.
  for (const std::string& name : own_->names())
    generation_ = std::max(generation_, generation_of(name) + 1);
  sweep();
}

// The manifest that is there, and the folders that it names.
void CheckpointDirectory::note_replaced() {
  if (!is_there(file(format_.manifest_file()))) return;
  old_ = text_in(path_, label_, format_.manifest_file());
  try {
    replaced_ = named_in(format_, path_, label_);
  } catch (const Error&) {
    // It is damaged, or of another release, which marks its folders.
  }
}

CheckpointDirectory::~CheckpointDirectory() {
  try {
    if (own_) sweep();
    if (is_there(file(format_.manifest_file()))) return;
    if (lock_in_ == path_) drop_writer_lock(path_);
    if (made_) ::rmdir(path_.c_str());  // fails, as it should, if the directory is not empty
  } catch (const std::exception&) {
    // Files that cannot be removed stay; the next writer removes them.
  }
}

// A link of a series leads to a checkpoint that is somebody's.
void CheckpointDirectory::replace_link() const {
  if (lock_in_ == path_ || !fs::is_symlink(fs::symlink_status(path_))) return;
  hold_writer_lock(lock_in_, label_);
  tell_once(fmt::format(
      "{} was a link: the new one takes its place, and what the link led to stays", label_));
  OwnFiles(lock_in_, label_).remove_file(fs::path(path_).filename());
}

std::string CheckpointDirectory::folder() const {
  make_marked_folder(path_, std::to_string(generation_));
  return file(std::to_string(generation_));
}

// Throws Error unless a save may replace what is there: an empty directory, one with a checkpoint
// and nothing else, or the files of a writer that died in its first save. One of a series may have
// other files besides, as some stay where an older one was removed.
void CheckpointDirectory::check_replaceable() const {
  auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID, "{}: {}; save under another name", label_, why);
  };
  if (!fs::is_directory(path_)) refuse("there is something else of that name");
  const bool in_series = lock_in_ != path_;
  const OwnFiles there(path_, label_);
  bool locked = in_series, all_own = true;
  for (const std::string& name : there.names()) {
    const bool own = there.is_own_folder(name) ||
                     (name == format_.fresh_file() && is_begun_manifest(format_, path_, label_));
    const bool usual = own || generation_of(name) > 0 || name == format_.manifest_file() ||
                       name == kLockFile || name == kRunning.file;
    if (!usual && (!in_series || name == format_.fresh_file()))
      refuse(fmt::format("the directory holds '{}', which is not of a checkpoint", name));
    locked |= name == kLockFile, all_own &= own;
  }
  if (!is_there(file(format_.manifest_file()))) {
    if (!locked && !all_own) refuse("the directory is not a checkpoint");
  } else if (!format_.is_checkpoint(path_, label_)) {
    refuse("the directory is not a checkpoint");
  }
}

// The folders of data files, as the manifest names them.
CheckpointDirectory::Folders CheckpointDirectory::named_in(const CheckpointFormat& format,
                                                           const std::string& path,
                                                           const std::string& label) {
  Folders folders;
  for (const std::string& name : format.files_in(path, label)) {
    const size_t slash = name.find('/');
    folders[name.substr(0, slash)].insert(name.substr(slash + 1));
  }
  return folders;
}

// Returns whether anything was removed.
bool CheckpointDirectory::sweep(const CheckpointFormat& format, const OwnFiles& own,
                                const std::string& path, const Folders& kept,
                                const Folders& replaced) {
  bool removed = false;
  for (const std::string& name : own.names()) {
    if (kept.contains(name)) continue;
    if (name == format.fresh_file() && is_begun_manifest(format, path, path))
      removed |= own.remove_file(name);
    else if (own.is_own_folder(name))
      removed |= own.remove_own_folder(name);
    else if (const auto named = replaced.find(name); named != replaced.end())
      removed |= own.remove_folder(name, named->second);
  }
  return removed;
}

// If the manifest cannot be read, no folder is removed.
void CheckpointDirectory::sweep() const try {
  Folders kept;
  if (is_there(file(format_.manifest_file()))) kept = named_in(format_, path_, label_);
  sweep(format_, *own_, path_, kept, replaced_);
} catch (const Error&) {
}

void CheckpointDirectory::put(const std::string& manifest, bool last) const {
  {
    File fresh = File::create(file(format_.fresh_file()), label_ + ": " + format_.fresh_file());
    fresh.write(manifest.data(), manifest.size());
    if (!last) fresh.finish();
  }
  if (!last) sync_directory(path_);  // makes the names of the data files durable
  hold_writer_lock(lock_in_, label_);
  if (::rename(file(format_.fresh_file()).c_str(), file(format_.manifest_file()).c_str()) != 0)
    fail(ORR_FAILED, "{}: {} cannot be put in place: {}", label_, format_.manifest_file(),
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
      ::unlinkat(AT_FDCWD, file(format_.manifest_file()).c_str(), 0);
    throw;
  }
}

void CheckpointDirectory::open_series(const std::string& path, const std::string& label) {
  if (is_there(path) && !fs::is_directory(path))
    fail(ORR_INVALID, "{}: there is something else of that name; give another directory", label);
  if (is_there(path + "/" + kManifestFile))
    fail(ORR_INVALID, "{}: the directory is itself a checkpoint; give another one, and run:load it",
         label);
  make_directories(path);
  hold_writer_lock(path, label);
}

void CheckpointDirectory::remove(const std::string& path, const std::string& lock_in,
                                 const std::string& label) {
  const std::string name = fs::path(path).filename();
  hold_writer_lock(lock_in, label);
  const OwnFiles around(fs::path(path).parent_path(), label);
  if (around.is_link(name)) {
    around.remove_file(name);
    return;
  }
  const OwnFiles own(path, label);
  Folders named;
  bool removed = false;
  if (is_there(path + "/" + kManifestFile)) {
    if (!own_format().is_checkpoint(path, label))
      fail(ORR_FAILED, "{} is none of this program", label);
    try {
      named = named_in(own_format(), path, label);
    } catch (const Error&) {
      // Damaged, or of another release: what has marks goes.
    }
    removed = own.remove_file(kManifestFile);
    if (!removed) return;
    sync_directory(path);
  }
  removed |= sweep(own_format(), own, path, {}, named);
  if (lock_in == path) drop_writer_lock(path);
  const std::vector<std::string> left = own.names();
  if (!left.empty())
    around.stays(name, fmt::format("it holds '{}', which is not of a checkpoint", left[0]));
  else if (removed)
    around.remove_directory(name);
}

}  // namespace orrery
