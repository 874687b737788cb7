// SPDX-License-Identifier: Apache-2.0
//
// Reading: verifies a checkpoint, and makes parts of tensors out of the boxes in its files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <system_error>

#include "base/digest.h"
#include "base/error.h"
#include "store/checkpoint.h"
#include "store/checkpoint_format.h"
#include "store/file.h"
#include "store/manifest.h"
#include "store/remote_checkpoint.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemedy = "; restore the checkpoint from a copy or load an earlier one";

std::string label_of(const std::string& directory, const std::string& file) {
  return fmt::format("checkpoint '{}': {}", directory, file);
}

// Keeps the directory open, so that files opened by name in it belong to the same checkpoint even
// if the directory is renamed meanwhile.
class OpenDirectory : public CheckpointSource {
 public:
  explicit OpenDirectory(const std::string& directory)
      : fd_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0)
      fail(ORR_FAILED, "checkpoint '{}' cannot be opened: {}; check the path", directory,
           std::generic_category().message(errno));
  }
  ~OpenDirectory() override { ::close(fd_); }
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  std::string manifest(const std::string& label) const override {
    return read_manifest_text(File::open(fd_, kManifestFile, label, false));
  }
  File open(const std::string& name, const FileFacts&, const std::string& label) override {
    if (::faccessat(fd_, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
      fail_damaged("{} is missing; restore it from a copy or check the path", label);
    return File::open(fd_, name, label, false);
  }

 private:
  int fd_;
};

std::unique_ptr<CheckpointSource> source_of(const std::string& directory) {
  if (is_address(directory)) return remote_source(directory);
  return std::make_unique<OpenDirectory>(directory);
}

std::string manifest_text(const CheckpointSource& at, const std::string& directory) {
  return at.manifest(label_of(directory, kManifestFile));
}

// Opens a file of a checkpoint. Its digest is compared before anything in it is looked at.
std::unique_ptr<SafetensorsFile> open_verified(CheckpointSource& at, const std::string& name,
                                               const std::string& label,
                                               const FileFacts& expected) {
  File file = at.open(name, expected, label);
  if (file.size() < expected.bytes)
    fail_damaged("{} is truncated: {} of {} bytes{}", label, file.size(), expected.bytes, kRemedy);
  if (file.size() > expected.bytes)
    fail_damaged("{} has {} bytes after the {} that were saved{}", label,
                 file.size() - expected.bytes, expected.bytes, kRemedy);
  if (const std::string digest = digest_of(file); digest != expected.digest)
    fail_damaged("{} was altered: its digest is {} instead of {}{}", label, digest, expected.digest,
                 kRemedy);
  return std::make_unique<SafetensorsFile>(std::move(file));
}

// A box of a tensor that a file has.
struct StoredBox {
  Box box;
  const SafetensorsFile* file;
  const SafetensorsEntry* entry;
};

// Adds to `to` what the stored box has of the wanted one.
void read_common(const StoredBox& stored, const Box& wanted, std::byte* to) {
  const Box here = wanted.common_with(stored.box), there = stored.box.common_with(wanted);
  if (here.elements() == 0) return;
  int64_t last = there.at;  // the place of the last element in the stored box
  for (size_t d = 0; d < there.shape.size(); ++d) last += (there.shape[d] - 1) * there.strides[d];
  const int64_t size = orr_dtype_bytes(stored.entry->type.dtype);
  const auto first_byte = static_cast<uint64_t>(there.at * size),
             bytes = static_cast<uint64_t>((last + 1 - there.at) * size);
  std::byte* place = to + here.at * size;
  if (here.strides == row_major(here.shape) && there.strides == here.strides)
    return stored.file->read(*stored.entry, first_byte, bytes, place);
  std::vector<std::byte> span(bytes);
  stored.file->read(*stored.entry, first_byte, bytes, span.data());
  copy_box(here.shape, size, span.data(), there.strides, place, here.strides);
}

class OwnCheckpoint : public OpenCheckpoint {
 public:
  OwnCheckpoint(CheckpointSource& at, const std::string& where, const std::string& text) {
    directory = where;
    const Manifest manifest = parse_manifest(text, label_of(where, kManifestFile));
    facts = manifest.facts, tensors = manifest.tensors;
    for (auto& [name, of_file] : manifest.files) {
      const std::string label = label_of(directory, name);
      files_.push_back(open_verified(at, name, label, of_file));
      if (files_.back()->entries().size() != of_file.offsets.size())
        fail(ORR_FAILED, "{} has {} tensors, {} expected{}", label, files_.back()->entries().size(),
             of_file.offsets.size(), kRemedy);
      for (const SafetensorsEntry& entry : files_.back()->entries()) add(of_file, entry, label);
    }
    check_complete();
    Digest of_text;
    of_text.add(text.data(), text.size());
    digest = of_text.number();
  }

  void read(const std::string& name, const Box& wanted, std::byte* to) const override {
    const auto found = boxes_.find(name);
    if (found == boxes_.end()) return;  // a tensor without elements
    for (const StoredBox& stored : found->second) read_common(stored, wanted, to);
  }

 private:
  // Notes a box. Throws Error unless it is inside its tensor.
  void add(const FileFacts& facts, const SafetensorsEntry& entry, const std::string& label) {
    const auto tensor = tensors.find(entry.name);
    const auto offset = facts.offsets.find(entry.name);
    const bool known = tensor != tensors.end() && offset != facts.offsets.end();
    bool inside = known && tensor->second.dtype == entry.type.dtype &&
                  tensor->second.dims.size() == entry.type.dims.size() &&
                  offset->second.size() == entry.type.dims.size();
    for (size_t d = 0; inside && d < entry.type.dims.size(); ++d)
      inside = offset->second[d] <= tensor->second.dims[d] - entry.type.dims[d];
    if (!inside)
      fail(ORR_FAILED, "{}: '{}' {} is no box of {}{}", label, entry.name, to_string(entry.type),
           known ? to_string(tensor->second) : "any tensor of the checkpoint", kRemedy);
    const Dims& shape = entry.type.dims;
    boxes_[entry.name].push_back(
        {{offset->second, shape, 0, row_major(shape)}, files_.back().get(), &entry});
  }

  void check_complete() const {
    for (auto& [name, type] : tensors) {
      int64_t elements = 0;
      if (const auto found = boxes_.find(name); found != boxes_.end())
        for (const StoredBox& stored : found->second) elements += stored.box.elements();
      if (elements != type.elements())
        fail(ORR_FAILED, "{}: the files have {} elements of '{}' {}{}",
             label_of(directory, kManifestFile), elements, name, to_string(type), kRemedy);
    }
  }

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::vector<StoredBox>> boxes_;
};

}  // namespace

std::unique_ptr<OpenCheckpoint> open_own_checkpoint(const std::string& directory) {
  constexpr int most_tries = 20;
  const std::unique_ptr<CheckpointSource> at = source_of(directory);
  for (int tries = 1;; ++tries) {
    const std::string text = manifest_text(*at, directory);
    try {
      return std::make_unique<OwnCheckpoint>(*at, directory, text);
    } catch (const Error&) {
      // A writer that has replaced the checkpoint meanwhile has removed these files: try again.
      if (tries == most_tries || manifest_text(*at, directory) == text) throw;
    }
  }
}

Checkpoint::Checkpoint(const std::string& given) {
  std::string directory = given;
  for (const InSeries& one : checkpoints_in(given))
    if (one.complete) directory = one.path;
  if (std::error_code error;
      directory != given &&
      (is_address(given) ? is_remote_checkpoint(given)
                         : fs::exists(fs::path(given) / kManifestFile, error)))
    fail(ORR_INVALID, "'{}' is a checkpoint, and has others, such as '{}': load one by its name",
         given, fs::path(directory).filename().string());
  open_ = format_in(directory).open(directory);
}

Checkpoint::~Checkpoint() = default;

const CheckpointFacts& Checkpoint::facts() const { return open_->facts; }
const TensorTypes& Checkpoint::tensors() const { return open_->tensors; }
uint64_t Checkpoint::digest() const { return open_->digest; }
bool Checkpoint::of_plugin() const { return open_->of_plugin; }
const std::string& Checkpoint::directory() const { return open_->directory; }

void Checkpoint::read(const std::string& name, const Part& part, std::byte* to) const {
  for (const Box& wanted : boxes_of(part, tensors().at(name))) open_->read(name, wanted, to);
}

HostTensor Checkpoint::read(const std::string& name) const {
  HostTensor whole = HostTensor::make(tensors().at(name));
  read(name, {}, whole.bytes->data());
  return whole;
}

std::vector<InSeries> checkpoints_in(const std::string& directory) try {
  if (is_address(directory)) return remote_checkpoints_in(directory);
  static const std::regex pattern("step-([0-9]{8,18})");
  std::vector<InSeries> found;
  if (fs::status(directory).type() == fs::file_type::not_found) return found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::smatch match;
    const std::string name = entry.path().filename().string();
    if (!std::regex_match(name, match, pattern)) continue;
    InSeries one{entry.path().string(), std::stoll(match[1].str()), false, ""};
    std::error_code error;
    const fs::file_type type = fs::status(one.path, error).type();
    // One that may not be looked at counts as complete: opening it says what is wrong.
    if (type == fs::file_type::directory || type == fs::file_type::none) {
      one.complete =
          fs::status(entry.path() / kManifestFile, error).type() != fs::file_type::not_found;
      if (one.complete) try {
          const std::string text = manifest_text(OpenDirectory(one.path), one.path);
          one.extra = parse_manifest(text, one.path).facts.extra;
        } catch (const Error&) {
        }
      found.push_back(std::move(one));
    }
  }
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.step < b.step; });
  return found;
} catch (const fs::filesystem_error& e) {
  fail(ORR_FAILED, "directory '{}' of checkpoints cannot be read: {}; check the path", directory,
       e.code().message());
}

}  // namespace orrery
