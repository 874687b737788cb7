// SPDX-License-Identifier: Apache-2.0
//
// Replaces a checkpoint by operations that every file system has. The directory stays. Data files
// lie in a folder with a number that was not used before, such as 7. The manifest, which names the
// checkpoint's files, is replaced by renaming a file onto it. A crash at any instant leaves the old
// manifest or the new one, each with all its files; the next writer removes folders that are not
// named.
#pragma once

#include <optional>
#include <string>

namespace orrery {

class CheckpointDirectory {
 public:
  // Makes the directory and missing parents, becomes the writer of `lock_in` (writer_lock.h), which
  // is the directory or the one that holds it, and removes files that a dead writer has left. Both
  // paths are absolute, without symbolic links. Throws Error, beginning with `label`, if the
  // directory has anything but a checkpoint, or another writer.
  CheckpointDirectory(const std::string& path, const std::string& lock_in,
                      const std::string& label);
  // Removes files that the manifest does not name, and the directory if it has no manifest.
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;

  // Makes the folder for the data files of a new checkpoint, and returns its path.
  std::string folder() const;
  // Makes this text the manifest, and returns when it is on the disk. If it throws Error, the
  // checkpoint is what it was before. REQUIRES: the files that it names are synced.
  void commit(const std::string& manifest);
  // Makes it no checkpoint any more; the destructor then removes the files.
  void remove();

 private:
  bool has_shards_only(const std::string& name) const;
  void check_replaceable() const;
  void sweep() const;
  // Replaces the manifest. With `last` nothing is synced, because the kernel has failed to sync
  // already: only what other processes see is restored.
  void put(const std::string& manifest, bool last = false) const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_, lock_in_, label_;
  std::optional<std::string> old_;  // the manifest before; empty: there was none
  int64_t generation_ = 1;
};

}  // namespace orrery
