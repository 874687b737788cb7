// SPDX-License-Identifier: Apache-2.0
//
// Replaces a checkpoint by operations that every file system has. The directory stays. Data files
// lie in a folder with a number that was not used before, such as 7. The manifest, which names the
// checkpoint's files, is replaced by renaming a file onto it. A crash at any instant leaves the old
// manifest or the new one, each with all its files; the next writer removes folders that are not
// named, if this program has made them (own_files.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "store/checkpoint_format.h"
#include "store/checkpoint_place.h"
#include "store/own_files.h"

namespace orrery {

class CheckpointDirectory : public CheckpointPlace {
 public:
  // Makes the directory and missing parents, becomes the writer of `lock_in` (writer_lock.h), which
  // is the directory or, for one of a series, the one that holds it, and removes files that a dead
  // writer has left. Both paths are absolute, without symbolic links, except that the last name of
  // one of a series may be a link, in whose place a directory is made. Throws Error, beginning with
  // `label`, if there is something else that a checkpoint cannot replace, such as one of another
  // format, or another writer.
  CheckpointDirectory(const std::string& path, const std::string& lock_in, const std::string& label,
                      const CheckpointFormat& format);
  // Removes files that the manifest does not name, and a directory that it has made if that has no
  // manifest.
  ~CheckpointDirectory() override;
  CheckpointDirectory(const CheckpointDirectory&) = delete;

  std::string folder() const override;
  // REQUIRES: the files that it names are synced.
  void commit(const std::string& manifest) override;
  // Makes a directory of several, and becomes its writer. Throws Error.
  static void open_series(const std::string& path, const std::string& label);
  // Removes a checkpoint, the manifest first, and then what else in the directory is of this
  // program; a link to a checkpoint goes, and what it leads to stays. Paths as above. Throws Error.
  static void remove(const std::string& path, const std::string& lock_in, const std::string& label);

 private:
  using Folders = std::map<std::string, std::set<std::string>>;  // the names of files in each

  void replace_link() const;
  void note_replaced();
  void check_replaceable() const;
  void sweep() const;
  static bool sweep(const CheckpointFormat& format, const OwnFiles& own, const std::string& path,
                    const Folders& kept, const Folders& replaced);
  static Folders named_in(const CheckpointFormat& format, const std::string& path,
                          const std::string& label);
  // Replaces the manifest. With `last` nothing is synced, because the kernel has failed to sync
  // already: only what other processes see is restored.
  void put(const std::string& manifest, bool last = false) const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_, lock_in_, label_;
  const CheckpointFormat& format_;
  bool made_ = false;               // the directory
  std::optional<std::string> old_;  // the manifest before; empty: there was none
  Folders replaced_;                // which that names
  std::optional<OwnFiles> own_;
  int64_t generation_ = 1;
};

}  // namespace orrery
