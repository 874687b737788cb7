// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads checkpoint.json, which says what a checkpoint directory must hold. Its last
// member is the xxh3-64 of all text before that member, so that damage to the manifest is detected.
#pragma once

#include <cstdint>
#include <string>

#include "store/checkpoint.h"
#include "store/file.h"

namespace orrery {

constexpr const char* kManifestFile = "checkpoint.json";
constexpr uint64_t kMostManifestBytes = 64 << 20;

struct Manifest {
  CheckpointFacts facts;
  TensorTypes tensors;
  CheckpointFiles files;  // by path in the manifest's directory: "7/NAME.safetensors"
};

// Throws Error if the caller's text (CheckpointFacts::extra) is not UTF-8, which JSON cannot hold,
// or too long.
std::string render_manifest(const Manifest& manifest);

// Throws Error, beginning with `label`, unless `text` is exactly what render_manifest made.
Manifest parse_manifest(const std::string& text, const std::string& label);

// The whole text of an open file. Throws Error if it is larger than any manifest.
std::string read_manifest_text(const File& file);

// Whether the text is a manifest, of any version, perhaps a damaged one.
bool looks_like_manifest(const std::string& text);
// Whether the text is the beginning of one, at which a writer died.
bool begins_as_manifest(const std::string& text);

}  // namespace orrery
