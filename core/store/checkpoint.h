// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads checkpoints. A checkpoint is a directory (docs/design.md, "Running and failing").
// It has safetensors files of the parameters and of the other states, by name, and a manifest,
// checkpoint.json, with step, seed, microbatches, the caller's text, and the names and xxh3 of the
// files. A crash leaves the old checkpoint or the new one (checkpoint_directory.h).
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

// Sorts tensors in the order in which a save reads them: parameters first.
void sort_for_checkpoint(std::vector<NamedTensor>& tensors);

// Saves the tensors, reading each once, in that order. From then on this process is the directory's
// only writer. Throws Error that names file, reason and remedy; the checkpoint then stays as it
// was.
void save_checkpoint(const std::string& directory, const CheckpointFacts& facts,
                     const std::vector<NamedTensor>& tensors);

struct LoadedCheckpoint {
  CheckpointFacts facts;
  std::map<std::string, HostTensor> tensors;
  uint64_t digest = 0;  // of the manifest, which has the digests of all files
};

// Loads a checkpoint, and verifies all of it before it returns: manifest, file sizes, digests,
// headers.
LoadedCheckpoint load_checkpoint(const std::string& directory);

}  // namespace orrery
