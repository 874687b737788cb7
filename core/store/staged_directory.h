// SPDX-License-Identifier: Apache-2.0
//
// A directory that appears whole or not at all. It is filled as `<final>.tmp-<pid>-<nonce>` beside
// its final name and swapped in with one rename. A writer that dies leaves such a directory behind;
// nobody reads it.
#pragma once

#include <string>

namespace orrery {

class StagedDirectory {
 public:
  // `final_path` is absolute, without symbolic links. Makes missing parents. Throws Error.
  explicit StagedDirectory(const std::string& final_path);
  // Removes the temporary directory: the new files if commit() did not succeed, else the old ones.
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& path() const { return path_; }

  // REQUIRES: every file in path() is synced. Returns once the new directory has the final name, on
  // the disk too; throws Error when the final name still, or again, holds what it held before.
  void commit();

 private:
  std::string final_, parent_, path_;
};

}  // namespace orrery
