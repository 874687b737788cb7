// SPDX-License-Identifier: Apache-2.0
#include "chunk_writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "../refuse.h"
#include "pickle_writer.h"

namespace data {
namespace {

constexpr uint64_t kMostPerCall = uint64_t{1} << 30;
constexpr uint64_t kAlignment = 64;  // of the elements in their archive, as PyTorch has it

std::string little_endian(std::initializer_list<std::pair<uint64_t, int>> numbers) {
  std::string bytes;
  for (auto [number, count] : numbers)
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

uint32_t crc_of(const void* bytes, uint64_t count) {
  return static_cast<uint32_t>(::crc32_z(0, static_cast<const Bytef*>(bytes), count));
}

// What stands in both headers of an entry: versions, no flags, not packed, a date of 1980.
std::string common_of(uint32_t crc, uint64_t count, const std::string& name, uint64_t extra) {
  return little_endian({{20, 2},
                        {0, 2},
                        {0, 2},
                        {0, 2},
                        {0x21, 2},
                        {crc, 4},
                        {count, 4},
                        {count, 4},
                        {name.size(), 2},
                        {extra, 2}});
}

std::string pickle_of(const TorchElements& kind, const std::vector<int64_t>& dims) {
  std::vector<int64_t> steps(dims.size());
  int64_t count = 1;
  for (size_t d = dims.size(); d-- > 0; count *= dims[d]) steps[d] = count;
  PickleWriter pickle;
  pickle.name("torch._utils", "_rebuild_tensor_v2");
  pickle.begin();
  pickle.begin();
  pickle.text("storage");
  pickle.name("torch", kind.storage + std::strlen("torch."));
  pickle.text("0");
  pickle.text("cpu");
  pickle.number(count);
  pickle.tuple();
  pickle.storage();
  pickle.number(0);
  pickle.numbers(dims);
  pickle.numbers(steps);
  pickle.no();
  pickle.name("collections", "OrderedDict");
  pickle.empty_tuple();
  pickle.call();
  pickle.tuple();
  pickle.call();
  return pickle.bytes();
}

}  // namespace

ChunkWriter::ChunkWriter(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_ < 0) cannot("created");
}

ChunkWriter::~ChunkWriter() {
  if (file_ >= 0) ::close(file_);
}

void ChunkWriter::cannot(const char* what) const {
  const int error = errno;
  fail(ORR_FAILED, "checkpoint file '", path_, "' cannot be ", what, ": ", std::strerror(error),
       error == ENOSPC || error == EDQUOT ? "; free some space or save elsewhere"
                                          : "; save elsewhere");
}

void ChunkWriter::write(const void* bytes, uint64_t count) {
  const auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = ::write(file_, from, std::min(count, kMostPerCall));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) cannot("written");
    from += done, count -= static_cast<uint64_t>(done), bytes_ += static_cast<uint64_t>(done);
  }
}

void ChunkWriter::finish() {
  if (::fsync(file_) != 0) cannot("synced");
  if (::close(std::exchange(file_, -1)) != 0) cannot("closed");
}

void ChunkWriter::tensor(const TorchElements& kind, const std::vector<int64_t>& dims,
                         const void* elements) {
  uint64_t count = static_cast<uint64_t>(kind.bytes);
  for (int64_t dim : dims) count *= static_cast<uint64_t>(dim);
  const std::string pickle = pickle_of(kind, dims);
  archive({{"data.pkl", pickle.data(), pickle.size()},
           {"byteorder", "little", 6},
           {"data/0", elements, count},
           {"version", "3\n", 2}});
}

void ChunkWriter::value(const std::string& pickle) {
  archive({{"data.pkl", pickle.data(), pickle.size()},
           {"byteorder", "little", 6},
           {"version", "3\n", 2}});
}

// A zip archive. REQUIRES: no part has 4 GiB.
void ChunkWriter::archive(const std::vector<Part>& parts) {
  constexpr uint64_t local_bytes = 30, field_bytes = 4;
  const uint64_t begin = bytes_;
  std::string directory;
  for (const Part& part : parts) {
    const std::string name = "archive/" + part.name;
    const uint32_t crc = crc_of(part.bytes, part.count);
    const uint64_t at = bytes_ - begin;
    // A field behind the name fills up to where the part begins.
    const uint64_t fill =
        (kAlignment - (at + local_bytes + name.size() + field_bytes) % kAlignment) % kAlignment;
    const std::string field = little_endian({{0x4246, 2}, {fill, 2}}) + std::string(fill, 'Z');
    const std::string local = little_endian({{0x04034b50, 4}}) +
                              common_of(crc, part.count, name, field.size()) + name + field;
    write(local.data(), local.size());
    write(part.bytes, part.count);
    directory += little_endian({{0x02014b50, 4}, {20, 2}}) + common_of(crc, part.count, name, 0) +
                 little_endian({{0, 2}, {0, 2}, {0, 2}, {0, 4}, {at, 4}}) + name;
  }
  const uint64_t at = bytes_ - begin;
  directory += little_endian({{0x06054b50, 4},
                              {0, 2},
                              {0, 2},
                              {parts.size(), 2},
                              {parts.size(), 2},
                              {directory.size(), 4},
                              {at, 4},
                              {0, 2}});
  write(directory.data(), directory.size());
}

}  // namespace data
