// SPDX-License-Identifier: Apache-2.0
//
// A directory of torch.distributed.checkpoint that is open: its tensors, of which boxes are read,
// and the facts of a run in it, {"orrery": {"step": 3, "seed": 1}}.
#pragma once

#include <orrery/checkpoint.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "archive.h"
#include "checkpoint.h"

namespace data {

class OpenedCheckpoint {
 public:
  // Verifies all of it. Throws Error, which names the file, here and below.
  explicit OpenedCheckpoint(const std::string& directory);

  // Texts live as long as this.
  void facts(orr_run_facts* out) const;
  void tensors(orr_give_tensor* give, void* to) const;
  // Writes a box of a tensor, row by row. [any thread]
  void read(const std::string& name, const int64_t* offset, const int64_t* dims, void* to) const;

 private:
  struct Opened {
    ChunkedTensor tensor;
    std::vector<Archive> archives;  // of its chunks
  };
  BytesPtr open(const std::string& file);
  BytesPtr part_of(const Chunk& chunk);
  void read_value(const std::string& name, const Chunk& chunk);
  int64_t number(const std::string& name) const;

  std::string directory_;
  std::map<std::string, BytesPtr> files_;
  std::map<std::string, Opened> tensors_;
  std::map<std::string, std::variant<int64_t, std::string>> values_;  // "orrery.step"
};

}  // namespace data
