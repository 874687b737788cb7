// SPDX-License-Identifier: Apache-2.0
//
// Weights by name: one safetensors file, or several with the index that Hugging Face's libraries
// write beside them (model.safetensors.index.json). Tensors are read one by one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program/state.h"

namespace orrery {

class SafetensorsFile;
struct SafetensorsEntry;

class Weights {
 public:
  // A path that ends with .json is an index. Throws Error that names file, tensor and remedy.
  explicit Weights(const std::string& path);

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  // What the tensor is in the engine; its file may hold elements of another kind.
  const Type& type(const std::string& name) const;
  // As a tensor of `dtype`, 0 for its own. Throws Error for a name that is not there, and for
  // numbers that `dtype` cannot hold.
  HostTensor read(const std::string& name, int32_t dtype = 0) const;

 private:
  struct Source {
    std::shared_ptr<const SafetensorsFile> file;
    const SafetensorsEntry* entry;
  };
  void add(const std::string& path, const std::vector<std::string>* wanted);
  void read_index();
  const Source& source(const std::string& name) const;

  std::string path_;
  std::map<std::string, Source> sources_;
};

// A matrix with rows and columns exchanged. Throws Error, which calls it `name`, for other tensors.
HostTensor transposed(const HostTensor& matrix, const std::string& name);

// Writes weights to a path: to the file itself, or to several files beside PATH.index.json, which
// says which tensor is where. They take the place of what was saved to the path before, whichever
// of the two that was: nothing is left that would be loaded for the new ones. All functions throw
// Error; what was there is then still there, and nothing else.
class WeightsWriter {
 public:
  WeightsWriter(const std::string& path, bool several);
  ~WeightsWriter();
  WeightsWriter(const WeightsWriter&) = delete;

  // Writes a file under another name. REQUIRES: `file` is the path, if there are not several.
  void add(const std::string& file, const std::vector<std::pair<std::string, HostTensor>>& tensors);
  // Puts all in place.
  void finish();

 private:
  std::string index() const { return path_ + ".index.json"; }
  std::string index_text() const;
  void put(const std::string& file);
  void remove_old() const;

  const std::string path_;
  const bool several_;
  std::vector<std::string> unfinished_;         // files that are not in place
  std::map<std::string, std::string> file_of_;  // a tensor's, in the directory
  uint64_t bytes_ = 0;
  std::vector<std::string> old_;  // files that the index names, if we have written that
};

}  // namespace orrery
