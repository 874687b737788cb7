// SPDX-License-Identifier: Apache-2.0
#include "store/weights.h"

#include <fcntl.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_file.h"
#include "store/safetensors.h"
#include "store/safetensors_header.h"

namespace fs = std::filesystem;

namespace orrery {
namespace {

constexpr const char* kRemedy = "; restore the file from a copy or download it again";

// File name -> the tensors that the index says are in it.
std::map<std::string, std::vector<std::string>> parse_index(const std::string& path) {
  const std::string text = read_text(path, path, ORR_INVALID, kMostHeaderBytes);
  const auto index = nlohmann::json::parse(text, nullptr, false);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    fail(ORR_INVALID, "{}: not an index: expected JSON with a weight_map{}", path, kRemedy);
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& [name, file] : map->items()) {
    if (!file.is_string() || file.get_ref<const std::string&>().find('/') != std::string::npos ||
        file.get_ref<const std::string&>().find('\0') != std::string::npos)
      fail(ORR_INVALID, "{}: '{}' is in {}: expected the name of a file beside the index{}", path,
           name, file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kRemedy);
    files[file.get<std::string>()].push_back(name);
  }
  return files;
}

}  // namespace

Weights::Weights(const std::string& path) : path_(path) {
  if (path.ends_with(".json"))
    read_index();
  else
    add(path, nullptr);
}

void Weights::read_index() {
  for (const auto& [file, names] : parse_index(path_))
    add((fs::path(path_).parent_path() / file).string(), &names);
}

// The tensors of a file: all, or those that are wanted of it.
void Weights::add(const std::string& path, const std::vector<std::string>* wanted) {
  const std::string label = wanted ? fmt::format("{} (named by {})", path, path_) : path;
  const auto file =
      std::make_shared<const SafetensorsFile>(File::open(AT_FDCWD, path, label, true));
  std::map<std::string, Source> found;
  for (const SafetensorsEntry& entry : file->entries()) found[entry.name] = {file, &entry};
  if (!wanted) return sources_.merge(found);
  for (const std::string& name : *wanted) {
    if (!found.contains(name))
      fail(ORR_INVALID, "{}: there is no tensor '{}', which the index says it has{}", label, name,
           kRemedy);
    sources_[name] = found[name];
  }
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> all;
  for (const auto& [name, source] : sources_) all.push_back(name);
  return all;
}

const Weights::Source& Weights::source(const std::string& name) const {
  const auto found = sources_.find(name);
  if (found == sources_.end()) fail(ORR_INVALID, "{}: there is no tensor '{}'", path_, name);
  return found->second;
}

const Type& Weights::type(const std::string& name) const { return source(name).entry->type; }

HostTensor Weights::read(const std::string& name, int32_t dtype) const {
  const auto& [file, entry] = source(name);
  if (dtype && is_real(dtype) != is_real(entry->type.dtype))
    fail(ORR_INVALID,
         "{}: '{}' is {}, {} expected: real numbers and integers do not become each "
         "other",
         path_, name, to_string(entry->type), dtype_name(dtype));
  return file->read(*entry, dtype ? dtype : entry->type.dtype);
}

HostTensor transposed(const HostTensor& matrix, const std::string& name) {
  const Dims& dims = matrix.type.dims;
  if (dims.size() != 2)
    fail(ORR_INVALID, "'{}' is {}: only a matrix can be transposed", name, to_string(matrix.type));
  HostTensor turned = HostTensor::make({matrix.type.dtype, {dims[1], dims[0]}});
  const int64_t size = orr_dtype_bytes(matrix.type.dtype);
  auto* to = turned.data<std::byte>();
  for (int64_t column = 0; column < dims[1]; ++column)
    for (int64_t row = 0; row < dims[0]; ++row, to += size)
      std::memcpy(to, matrix.data<std::byte>() + (row * dims[1] + column) * size,
                  static_cast<size_t>(size));
  return turned;
}

}  // namespace orrery
