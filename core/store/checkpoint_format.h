// SPDX-License-Identifier: Apache-2.0
//
// A format of checkpoints: Orrery's own (docs/checkpoints.md), or that of another program, which a
// plugin knows (orrery/checkpoint.h). Whatever it is, a checkpoint in a directory is a manifest,
// and folders that hold the files of one save each (checkpoint_directory.h).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "store/checkpoint.h"

namespace orrery {

// A checkpoint that was verified; what Checkpoint has.
class OpenCheckpoint {
 public:
  virtual ~OpenCheckpoint() = default;
  // Adds to `to` what the tensor, which is in `tensors`, has of a box. [any thread]
  virtual void read(const std::string& name, const Box& wanted, std::byte* to) const = 0;

  std::string directory;
  CheckpointFacts facts;
  TensorTypes tensors;
  uint64_t digest = 0;  // of the manifest
  bool of_plugin = false;
};

// All functions throw Error, which names the file.
class CheckpointFormat {
 public:
  virtual ~CheckpointFormat() = default;

  // -- what the directory has
  virtual std::string manifest_file() const = 0;
  // Its name until it is complete, and whether a file of that name and text is one of ours.
  virtual std::string fresh_file() const = 0;
  virtual bool is_begun(const std::string& text) const = 0;
  // Whether that is a checkpoint of this format, perhaps a damaged one. Errors begin with `label`.
  // REQUIRES: it has a manifest file.
  virtual bool is_checkpoint(const std::string& directory, const std::string& label) const = 0;
  // The paths in the directory of all files of its checkpoint.
  virtual std::set<std::string> files_in(const std::string& directory,
                                         const std::string& label) const = 0;

  // -- writing
  // Writes and syncs the files of one writer, numbered from 0, and returns what `manifest` must
  // know of them. Each box is read once, one at a time. [any thread]
  virtual std::string write(const ShardFolder& folder, int writer,
                            const std::vector<ShardBox>& pieces,
                            const TensorTypes& tensors) const = 0;
  // The manifest of what all writers have written; `texts` are theirs.
  virtual std::string manifest(const std::string& directory, const std::string& folder,
                               const CheckpointFacts& facts, const TensorTypes& tensors,
                               const std::vector<std::string>& texts) const = 0;

  // -- reading; see Checkpoint
  virtual std::unique_ptr<OpenCheckpoint> open(const std::string& directory) const = 0;
};

const CheckpointFormat& own_format();
std::unique_ptr<OpenCheckpoint> open_own_checkpoint(const std::string& directory);
// By the name that scripts give, "": Orrery's own. Throws Error, which names those that there are.
// [main thread]
const CheckpointFormat& format_named(const std::string& name);
// The one that a plugin finds in a directory, else Orrery's own. [main thread]
const CheckpointFormat& format_in(const std::string& directory);

// Throws Error unless the boxes have as many elements as the tensors.
void check_complete(const std::string& directory, const TensorTypes& tensors,
                    const std::map<std::string, int64_t>& written);

}  // namespace orrery
