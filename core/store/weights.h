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
  struct Place {
    std::shared_ptr<const SafetensorsFile> file;
    const SafetensorsEntry* entry;
  };
  void add(const std::string& path, const std::vector<std::string>* wanted);
  void read_index();
  const Place& place(const std::string& name) const;

  std::string path_;
  std::map<std::string, Place> places_;
};

// A matrix with rows and columns exchanged. Throws Error, which calls it `name`, for other tensors.
HostTensor transposed(const HostTensor& matrix, const std::string& name);

// Writes a file anew, or in place of the old one once it is on the disk. Throws Error.
void write_weights(const std::string& path,
                   const std::vector<std::pair<std::string, HostTensor>>& tensors);

}  // namespace orrery
