// SPDX-License-Identifier: Apache-2.0
//
// Writing: all files under other names first. weights.cpp reads.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text_file.h"
#include "store/safetensors.h"
#include "store/weights.h"

namespace fs = std::filesystem;

namespace orrery {
namespace {

constexpr const char* kWriter = "orrery";  // in the metadata of an index

std::string unfinished(const std::string& file) { return file + ".orrery-unfinished"; }
std::string name_of(const std::string& file) { return fs::path(file).filename().string(); }

File begin(const std::string& file) {
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(unfinished(file), error)))
    ::unlink(unfinished(file).c_str());  // of a writer that died
  return File::create(unfinished(file), file);
}

bool is_there(const std::string& path) { return fs::exists(fs::symlink_status(path)); }

// The files that an index names; nothing if it is not one that we have written. Older releases did
// not name themselves, and wrote it in a form that no other program uses.
std::optional<std::vector<std::string>> files_of_own_index(const std::string& path) {
  const std::string text = read_text(path, path, ORR_INVALID, kMostHeaderBytes);
  const auto index = nlohmann::json::parse(text, nullptr, false);
  const bool ours =
      text.starts_with("{\n  \"metadata\": { \"total_size\": ") ||
      (index.is_object() && index.contains("metadata") && index["metadata"].is_object() &&
       index["metadata"].value("writer", "") == kWriter);
  if (!ours) return std::nullopt;
  std::vector<std::string> files;
  if (index.is_object() && index.contains("weight_map") && index["weight_map"].is_object())
    for (const auto& file : index["weight_map"])
      if (file.is_string() && file.get_ref<const std::string&>().find('/') == std::string::npos)
        files.push_back(file);
  return files;
}

}  // namespace

WeightsWriter::WeightsWriter(const std::string& path, bool several)
    : path_(path), several_(several) {
  if (fs::is_directory(path_))
    fail(ORR_INVALID, "{} is a directory; give the name of a file", path_);
  if (!is_there(index())) return;
  auto files = files_of_own_index(index());
  if (!files && !several_)
    fail(ORR_INVALID,
         "{}: {}, which another program has written, would go on naming other weights; save under "
         "another name",
         path_, index());
  if (files) old_ = std::move(*files);
}

WeightsWriter::~WeightsWriter() {
  for (const std::string& file : unfinished_) ::unlink(unfinished(file).c_str());
}

void WeightsWriter::add(const std::string& file,
                        const std::vector<std::pair<std::string, HostTensor>>& tensors) {
  File fresh = begin(file);
  unfinished_.push_back(file);
  write_safetensors(fresh, NamedTensors(tensors.begin(), tensors.end()));
  fresh.finish();
  for (const auto& [name, tensor] : tensors)
    file_of_[name] = name_of(file), bytes_ += tensor.bytes->size();
}

std::string WeightsWriter::index_text() const {
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", bytes_}, {"writer", kWriter}}},
                                        {"weight_map", file_of_}};
  try {
    return index.dump(2) + "\n";
  } catch (const nlohmann::json::exception&) {
    fail(ORR_INVALID, "{}: the name of a file in an index must be UTF-8; rename it", path_);
  }
}

void WeightsWriter::put(const std::string& file) {
  if (::rename(unfinished(file).c_str(), file.c_str()) != 0)
    fail(ORR_FAILED, "{} cannot be put in place: {}", file, write_error(errno));
  std::erase(unfinished_, file);
}

// What would be loaded for the new files, or belongs to it.
void WeightsWriter::remove_old() const {
  const std::string stale = several_ ? path_ : index();
  if (::unlink(stale.c_str()) != 0 && errno != ENOENT)
    fail(ORR_FAILED, "{}, of an earlier save, cannot be removed: {}", stale, write_error(errno));
  for (const std::string& name : old_) {
    const bool in_use =
        std::ranges::any_of(file_of_, [&](const auto& each) { return each.second == name; });
    const std::string file = (fs::path(path_).parent_path() / name).string();
    if (!in_use && ::unlink(file.c_str()) != 0 && errno != ENOENT)
      tell_once(fmt::format("{}, of an earlier save, stays: {}", file, std::strerror(errno)));
  }
}

void WeightsWriter::finish() {
  if (several_) {
    const std::string text = index_text();
    File fresh = begin(index());
    unfinished_.push_back(index());
    fresh.write(text.data(), text.size());
    fresh.finish();
    // From here on to its end, a save that is interrupted leaves no index, not one of mixed files.
    if (::unlink(index().c_str()) != 0 && errno != ENOENT)
      fail(ORR_FAILED, "{} cannot be replaced: {}", index(), write_error(errno));
  }
  for (const std::string& file : std::vector(unfinished_)) put(file);
  remove_old();
  const std::string directory = fs::path(path_).parent_path().string();
  sync_directory(directory.empty() ? "." : directory);
}

}  // namespace orrery
