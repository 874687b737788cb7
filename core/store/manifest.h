// SPDX-License-Identifier: Apache-2.0
//
// checkpoint.json: what a checkpoint directory must hold. Its last member is the xxh3-64 of all
// text before that member, so that damage to the manifest itself is seen too.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "store/checkpoint.h"

namespace orrery {

constexpr const char* kManifestFile = "checkpoint.json";
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

struct FileFacts {
  uint64_t bytes = 0;
  std::string digest;
};

struct Manifest {
  CheckpointFacts facts;
  std::map<std::string, FileFacts> files;  // by name: kModelFile, kOptimizerFile
};

// Throws Error if the caller's text is not UTF-8, which JSON cannot hold.
std::string render_manifest(const Manifest& manifest);

// Throws Error, beginning with `label`, unless `text` is exactly what render_manifest made.
Manifest parse_manifest(const std::string& text, const std::string& label);

// Whether `text` says that it is a manifest, of any version, damaged or not.
bool looks_like_manifest(const std::string& text);

}  // namespace orrery
