// SPDX-License-Identifier: Apache-2.0
//
// How a checkpoint is replaced by means that every file system has. The directory stays; data files
// get names that were never used, as model.7.safetensors, and the manifest, which says which files
// are the checkpoint's, is replaced by renaming a file onto it. A crash at any instant leaves the
// old manifest or the new one, each with all its files; the next writer removes what neither names.
#pragma once

#include <optional>
#include <string>

namespace orrery {

class CheckpointDirectory {
 public:
  // Makes the directory and missing parents, becomes its writer (writer_lock.h) and removes what a
  // dead one has left. `path` is absolute, without symbolic links. Throws Error, beginning with
  // `label`, if there is anything but a checkpoint, or another writer.
  CheckpointDirectory(const std::string& path, const std::string& label);
  // Removes what the manifest does not name; the directory too, if it has got none.
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;

  // "model.7.safetensors" for "model".
  std::string name_for(const std::string& kind) const;
  const std::string& path() const { return path_; }

  // REQUIRES: the files that it names are synced. Returns once it is the manifest, on the disk too;
  // throws Error when the checkpoint still, or again, is what it was before.
  void commit(const std::string& manifest);

 private:
  void check_replaceable() const;
  void sweep() const;
  // With `last` the kernel has failed to sync: only what other processes see is put right.
  void put(const std::string& manifest, bool last = false) const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_, label_;
  std::optional<std::string> old_;  // manifest
  int64_t generation_ = 1;
};

}  // namespace orrery
