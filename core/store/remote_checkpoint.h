// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints on servers. The files of a save have a folder whose number nobody else has, and the
// manifest is written last, only if it is still the one that this writer has seen: of two that save
// at once the second is refused. A crash leaves the old checkpoint or the new one, and perhaps
// files that no manifest names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_place.h"
#include "store/remote_files.h"

namespace orrery {

// All functions throw Error, which names the address. [main thread]
std::unique_ptr<CheckpointPlace> remote_place(const std::string& address);
std::unique_ptr<CheckpointSource> remote_source(const std::string& address);

// Whether there is a manifest at the address itself.
bool is_remote_checkpoint(const std::string& address);
// Those of a series, as checkpoints_in has them; only complete ones are known. None where the
// server cannot list what it has.
std::vector<InSeries> remote_checkpoints_in(const std::string& address);
// Throws Error unless files can be written there.
void open_remote_series(const std::string& address);
// Removes the manifest, and then the files that it names.
void remove_remote_checkpoint(const std::string& address);

}  // namespace orrery
