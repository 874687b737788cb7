// SPDX-License-Identifier: Apache-2.0
//
// Saves and loads checkpoints. A checkpoint is a directory (docs/checkpoints.md), or the same on a
// server where its name is an address (remote_checkpoint.h). Several processes write it together.
// Each writes boxes of tensors to safetensors files of its own. One of them then writes the
// manifest, checkpoint.json: the facts of the run, the type of every tensor, and for each file its
// size, its xxh3 and where its boxes belong. A crash leaves the old checkpoint or the new one
// (checkpoint_directory.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/remote_files.h"
#include "store/safetensors.h"

namespace orrery {

class CheckpointFormat;
class CheckpointPlace;
class OpenCheckpoint;

struct CheckpointFacts {
  int64_t step = 0, microbatches = 0;
  uint64_t seed = 0;
  std::string extra;       // the caller's text, kept as it is
  bool fast_sums = false;  // sums over the batch need not have the bits of one process
};

// The job that this process is of, and which of the job's starts that is, from 1; without a name it
// is of none. A start becomes the writer where an earlier one of its job still is: the job has
// given that up.
struct WriterJob {
  std::string name;
  int64_t start = 0;
};
WriterJob& writer_job();

// A box of a tensor: its first element is at `offset` of the whole.
struct ShardBox {
  std::string name;
  Dims offset;
  TensorSource box;
};

struct FileFacts {
  uint64_t bytes = 0;
  std::string digest;
  std::map<std::string, Dims> offsets;      // of its boxes, by the name of the tensor
  std::map<std::string, int64_t> elements;  // of its boxes, while the checkpoint is written
};
using CheckpointFiles = std::map<std::string, FileFacts>;  // by the path in the directory
using TensorTypes = std::map<std::string, Type>;

// Thrown where files of a checkpoint are provably not those that were saved: one is missing or
// shorter, or does not have its digest. What cannot be read now, or not by this release, is an
// Error.
struct DamagedCheckpoint : Error {
  explicit DamagedCheckpoint(const std::string& message) : Error(ORR_FAILED, message) {}
};
template <class... Args>
[[noreturn]] void fail_damaged(fmt::format_string<Args...> text, Args&&... args) {
  throw DamagedCheckpoint(fmt::format(text, std::forward<Args>(args)...));
}

// As text, for the process that writes the manifest.
std::string to_text(const CheckpointFiles& files);
CheckpointFiles files_in(const std::string& text);

// The process that completes a checkpoint. All functions throw Error, which names file, reason and
// remedy; the directory then has the checkpoint that it had.
class CheckpointWriter {
 public:
  // Makes a folder for the files of all writers. From then on, this process is the
  // only writer of `lock_in` ("": the directory). Unless it is completed, the destructor removes
  // what was written. Borrows `format` (null: Orrery's own, checkpoint_format.h).
  explicit CheckpointWriter(const std::string& directory, const std::string& lock_in = "",
                            const CheckpointFormat* format = nullptr);
  ~CheckpointWriter();
  const std::string& folder() const { return folder_; }  // its path
  // REQUIRES: all writers have returned, and these are their texts.
  void complete(const CheckpointFacts& facts, const TensorTypes& tensors,
                const std::vector<std::string>& texts);

 private:
  const CheckpointFormat& format_;
  std::string directory_, folder_;
  std::unique_ptr<CheckpointPlace> place_;
};

// The folder of CheckpointWriter, for one of the writers. [main thread]
struct ShardFolder {
  ShardFolder(const std::string& path_or_address);  // NOLINT(google-explicit-constructor)
  std::string path;
  std::optional<RemoteFiles> server;  // of an address
};

// Writes and syncs the files of one writer, numbered from 0, in Orrery's own format; one that
// belongs to a server is sent there as soon as it is written. Each box is read once, one at a time.
// [any thread]
CheckpointFiles write_shard(const ShardFolder& folder, int writer,
                            const std::vector<ShardBox>& pieces);

// Removes a checkpoint of a series (series_path), the manifest first, so that no part of it is
// taken for the whole. Nothing goes but what this program has written: a link to a checkpoint goes,
// and what it leads to stays. What cannot be removed is told on stderr, and stays.
void remove_checkpoint(const std::string& directory, const std::string& series);

// A checkpoint that is open. Its files stay readable if they are removed or replaced.
class Checkpoint {
 public:
  // Verifies all of it before it returns: manifest, sizes, digests, headers, and that the boxes
  // make the tensors. A directory of checkpoints (series_path) is opened at the newest. Throws
  // DamagedCheckpoint or Error. The format is that of the directory.
  explicit Checkpoint(const std::string& directory);
  ~Checkpoint();

  const CheckpointFacts& facts() const;
  const TensorTypes& tensors() const;
  uint64_t digest() const;               // of the manifest, which has the digests of all files
  const std::string& directory() const;  // the one that was opened
  bool of_plugin() const;                // in the format of another program
  // Reads the elements of a part, as that lies in memory. REQUIRES: the tensor is in tensors().
  void read(const std::string& name, const Part& part, std::byte* to) const;
  HostTensor read(const std::string& name) const;

 private:
  std::unique_ptr<OpenCheckpoint> open_;
};

// Makes the directory for a series and becomes the writer there, so that a first save hours later
// does not find that it cannot. Throws Error.
void open_series(const std::string& directory);
// The checkpoint of a step in a directory of several: "DIR/step-00000020".
std::string series_path(const std::string& directory, int64_t step);
struct InSeries {
  std::string path;
  int64_t step = 0;
  bool complete = false;  // else it has no manifest: a writer died before it wrote that
  std::string extra;      // "" if the manifest cannot be read
};
// By steps; empty if there is no such directory. Only directories, and links to some. Throws Error
// if the directory cannot be read.
std::vector<InSeries> checkpoints_in(const std::string& directory);

}  // namespace orrery
