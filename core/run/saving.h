// SPDX-License-Identifier: Apache-2.0
//
// One save of a checkpoint: every rank writes its pieces, and rank 0 the manifest when all have.
// [main thread]
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "run/run.h"
#include "store/checkpoint.h"
#include "store/checkpoint_format.h"

namespace orrery {

// Calls `work` and returns the text of what it throws; "": nothing.
std::string error_of(const std::function<void()>& work);

// What a checkpoint is to have, and the pieces that this rank writes (run/checkpoint_shard.h).
struct SaveContents {
  std::string directory;
  CheckpointFacts facts;
  TensorTypes tensors;
  std::vector<ShardBox> pieces;
  std::string line;
  int ranks = 1;  // that write it together
};

class Saving {
 public:
  // Makes the directory, and begins to write: with `how.beside` in a thread, else it does all of it
  // before it returns. Collective; throws Error on all ranks.
  Saving(SaveContents contents, SaveHow how);
  ~Saving();
  Saving(const Saving&) = delete;

  // Whether this rank still writes its files.
  bool writing() const { return !written_; }
  bool done() const { return done_; }
  // Waits for all ranks, writes the manifest and removes the checkpoints that are not wanted any
  // more. Does nothing the second time. Collective; throws Error on all ranks.
  void finish();
  // Whether this rank writes all of it, so that `finish` needs no other rank.
  bool alone() const { return contents_.ranks == 1; }

 private:
  void write();
  void complete(const std::vector<std::string>& texts);
  void throw_together(const std::string& error) const;
  bool completes() const { return alone() || world_info().rank == 0; }

  SaveContents contents_;
  SaveHow how_;
  const CheckpointFormat* format_ = nullptr;
  std::optional<CheckpointWriter> writer_;  // of the rank that completes it
  std::optional<ShardFolder> folder_;
  std::string text_;  // of what this rank has written
  std::string error_;
  std::atomic<bool> written_{false};
  bool done_ = false;
  std::thread thread_;
};

}  // namespace orrery
