// SPDX-License-Identifier: Apache-2.0
//
// Where a checkpoint lies: in a directory (checkpoint_directory.h, open_checkpoint.cpp), or on a
// server (remote_checkpoint.h).
#pragma once

#include <string>

#include "store/checkpoint.h"
#include "store/file.h"

namespace orrery {

// For the process that completes it.
class CheckpointPlace {
 public:
  virtual ~CheckpointPlace() = default;
  // Makes the folder for the data files of a new checkpoint, and returns its path or address.
  virtual std::string folder() const = 0;
  // Makes this text the manifest, and returns when it will last. If it throws Error, the checkpoint
  // is what it was before. REQUIRES: the files that it names are complete.
  virtual void commit(const std::string& manifest) = 0;
};

// For one that reads it. Errors begin with `label`.
class CheckpointSource {
 public:
  virtual ~CheckpointSource() = default;
  virtual std::string manifest(const std::string& label) const = 0;
  // Opens a file that the manifest names. Throws DamagedCheckpoint if it is missing.
  virtual File open(const std::string& name, const FileFacts& expected,
                    const std::string& label) = 0;
};

}  // namespace orrery
