// SPDX-License-Identifier: Apache-2.0
//
// Writing: pieces into files, and the manifest when all files are there. open_checkpoint.cpp reads.
#include "store/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "store/checkpoint_directory.h"
#include "store/checkpoint_format.h"
#include "store/file.h"
#include "store/manifest.h"
#include "store/remote_checkpoint.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

// The directory's path without symbolic links, so that a checkpoint that is named by a link is
// replaced in its real place.
fs::path place_of(const std::string& directory) {
  if (directory.empty()) fail(ORR_INVALID, "a checkpoint needs the name of a directory; give one");
  fs::path path = fs::weakly_canonical(fs::absolute(directory));
  return path.has_filename() ? path : path.parent_path();
}

// The path of a checkpoint of a series. Its own name may be a link.
fs::path member_of(const std::string& directory, const std::string& series) {
  return place_of(series) / fs::path(directory).filename();
}

std::unique_ptr<CheckpointPlace> open_place(const std::string& directory,
                                            const std::string& lock_in,
                                            const CheckpointFormat& format) try {
  if (is_address(directory)) {
    if (&format == &own_format()) return remote_place(directory);
    fail(ORR_INVALID,
         "checkpoint '{}': only Orrery's own format is saved to an address; save to a directory, "
         "and copy that",
         directory);
  }
  const fs::path path = lock_in.empty() ? place_of(directory) : member_of(directory, lock_in);
  return std::make_unique<CheckpointDirectory>(path, lock_in.empty() ? path : place_of(lock_in),
                                               fmt::format("checkpoint '{}'", directory), format);
} catch (const fs::filesystem_error& e) {
  fail(ORR_FAILED, "checkpoint '{}' cannot be saved: {}", directory, write_error(e.code().value()));
}

// A file has one box of a tensor at most: the second boxes go to a second file, and so on.
std::vector<std::vector<const ShardBox*>> by_file(const std::vector<ShardBox>& pieces) {
  std::vector<std::vector<const ShardBox*>> files;
  std::map<std::string, size_t> boxes;
  for (const ShardBox& piece : pieces) {
    const size_t file = boxes[piece.name]++;
    files.resize(std::max(files.size(), file + 1));
    files[file].push_back(&piece);
  }
  return files;
}

// Where boxes belong, in the form in which torch.distributed.checkpoint looks for it.
Metadata sharding_info(const std::vector<const ShardBox*>& pieces) {
  nlohmann::json info = nlohmann::json::object();
  for (const ShardBox* piece : pieces) info[piece->name] = {{"saved_offsets", piece->offset}};
  try {
    return {{"DCP_SHARDING_INFO", info.dump()}, {"DCP_VERSION", "1.0"}};
  } catch (const nlohmann::json::exception&) {
    return {};  // a name is not UTF-8, which write_safetensors reports
  }
}

}  // namespace

void check_complete(const std::string& directory, const TensorTypes& tensors,
                    const std::map<std::string, int64_t>& written) {
  for (auto& [name, type] : tensors)
    if (const auto found = written.find(name);
        type.elements() != (found == written.end() ? 0 : found->second))
      fail(ORR_FAILED, "checkpoint '{}': {} elements of '{}' were written, {} expected", directory,
           found == written.end() ? 0 : found->second, name, to_string(type));
}

CheckpointWriter::CheckpointWriter(const std::string& directory, const std::string& lock_in,
                                   const CheckpointFormat* format)
    : format_(format ? *format : own_format()),
      directory_(directory),
      place_(open_place(directory, lock_in, format_)) {
  folder_ = place_->folder();
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::complete(const CheckpointFacts& facts, const TensorTypes& tensors,
                                const std::vector<std::string>& texts) {
  place_->commit(format_.manifest(directory_, folder_, facts, tensors, texts));
  place_.reset();
}

ShardFolder::ShardFolder(const std::string& path_or_address) : path(path_or_address) {
  if (is_address(path)) server.emplace(path);
}

CheckpointFiles write_shard(const ShardFolder& folder, int writer,
                            const std::vector<ShardBox>& pieces) {
  CheckpointFiles written;
  const auto files = by_file(pieces);
  std::optional<TemporaryFolder> unsent;
  if (folder.server) unsent.emplace();
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", writer + 1,
                                         i + 1, files.size());
    FileFacts facts;
    NamedTensors content;
    for (const ShardBox* piece : files[i]) {
      content.emplace_back(piece->name, piece->box);
      facts.offsets[piece->name] = piece->offset;
      facts.elements[piece->name] = piece->box.type.elements();
    }
    const std::string place = folder.path + "/" + name, path = unsent ? unsent->file(name) : place;
    File file = File::create(path, fmt::format("checkpoint file '{}'", path));
    write_safetensors(file, std::move(content), sharding_info(files[i]));
    file.finish();
    if (folder.server) {
      folder.server->put(place, path);
      fs::remove(path);
    }
    facts.bytes = file.size(), facts.digest = file.digest();
    written[name] = std::move(facts);
  }
  if (!files.empty() && !folder.server) sync_directory(folder.path);
  return written;
}

void remove_checkpoint(const std::string& directory, const std::string& series) {
  try {
    if (is_address(directory)) return remove_remote_checkpoint(directory);
    CheckpointDirectory::remove(member_of(directory, series), place_of(series),
                                fmt::format("checkpoint '{}'", directory));
  } catch (const std::exception& e) {
    tell_once(fmt::format("{}: it stays, though it is not needed any more", e.what()));
  }
}

void open_series(const std::string& directory) try {
  if (is_address(directory)) return open_remote_series(directory);
  CheckpointDirectory::open_series(place_of(directory), fmt::format("checkpoints '{}'", directory));
} catch (const fs::filesystem_error& e) {
  fail(ORR_FAILED, "checkpoints '{}' cannot be saved: {}", directory,
       write_error(e.code().value()));
}

std::string series_path(const std::string& directory, int64_t step) {
  return address_in(directory, fmt::format("step-{:08}", step));
}

}  // namespace orrery
