// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint is a directory (docs/design.md, "Running and failing"): safetensors files with
// parameters by name and with every other state, and checkpoint.json, the manifest: step, seed,
// microbatches, the caller's text, and the names and xxh3 of the files. A crash leaves the old one
// or the new one (checkpoint_directory.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "store/safetensors.h"

namespace orrery {

struct CheckpointFacts {
  int64_t step = 0, microbatches = 0;
  uint64_t seed = 0;
  std::string extra;  // the caller's text, kept as it is
};

struct NamedTensor {
  std::string name;
  bool parameter = true;
  TensorSource tensor;
};

// The order in which a save reads tensors: parameters first.
void sort_for_checkpoint(std::vector<NamedTensor>& tensors);

// Reads each tensor once, in that order. This process is the directory's one writer from then on.
// Throws Error naming file, reason and remedy; the checkpoint is then what it was before.
void save_checkpoint(const std::string& directory, const CheckpointFacts& facts,
                     const std::vector<NamedTensor>& tensors);

struct LoadedCheckpoint {
  CheckpointFacts facts;
  std::map<std::string, HostTensor> tensors;
  uint64_t digest = 0;  // of the manifest, and so of everything
};

// Verifies everything before it returns anything: manifest, file sizes, digests, headers.
LoadedCheckpoint load_checkpoint(const std::string& directory);

}  // namespace orrery
