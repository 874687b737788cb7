// SPDX-License-Identifier: Apache-2.0
//
// Files of token ids and nothing else, such as nanoGPT's train.bin, as fields x and y (x one token
// later). They are read a window at a time, so that they may be larger than the memory; those whose
// name ends in .gz or .zst are unpacked into memory. The header of llm.c's files is known and says
// how a token is stored, as does Megatron's NAME.idx, which stands for its NAME.bin; files of other
// formats are refused. The option `length` is the tokens of a window, `dtype` how a token is stored
// ("u16"), `more` lists the files that follow the first: windows run from one file into the next.
#include <array>
#include <cstring>

#include "formats.h"
#include "megatron.h"
#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

struct Kind {
  const char* name;
  const char* elements;
  uint64_t bytes;
};

const Kind& kind_of(const std::string& name) {
  static const Kind kinds[] = {{"u8", "|u1", 1},  {"u16", "<u2", 2}, {"u32", "<u4", 4},
                               {"u64", "<u8", 8}, {"i8", "|i1", 1},  {"i16", "<i2", 2},
                               {"i32", "<i4", 4}, {"i64", "<i8", 8}};
  for (const Kind& kind : kinds)
    if (name == kind.name) return kind;
  refuse("dtype is '", name, "': token files hold u8, u16, u32, u64, i8, i16, i32 or i64");
}

void check_length(const std::string& path, int64_t length, int64_t count) {
  if (length < 1 || length == INT64_MAX)
    refuse(path, ": a window of ", length, " tokens; give 1 or more");
  if (count <= length)
    refuse(path, ": there are ", count, " tokens, windows of ", length, " need at least ",
           length + 1);
}

// llm.c's files begin with 256 numbers of 32 bits: magic, version, how many tokens there are.
constexpr uint64_t kHeaderBytes = 1024;

// How the tokens are stored if the file has such a header, else null.
const char* kind_in_header(const Bytes& bytes) {
  std::array<int32_t, 3> first{};
  if (bytes.size() < kHeaderBytes) return nullptr;
  bytes.read(first.data(), sizeof first, 0);
  const char* kind = first[0] == 20240520 && first[1] == 1   ? "u16"
                     : first[0] == 20240801 && first[1] == 7 ? "u32"
                                                             : nullptr;
  if (!kind) return nullptr;
  const uint64_t held = bytes.size() - kHeaderBytes;
  if (first[2] < 0 || static_cast<uint64_t>(first[2]) * kind_of(kind).bytes != held)
    refuse(bytes.label(), ": its header says ", first[2], " tokens of ", kind, ", ", held,
           " bytes follow: the file is cut short or altered; restore it from a copy");
  return kind;
}

struct Tokens {
  BytesPtr bytes;
  const Kind& kind;
};

// `dtype` is "" if the script gives none.
Tokens tokens_in(const std::string& path, const std::string& dtype) {
  // By its name: the first tokens may be any bytes.
  const bool packed = path.ends_with(".gz") || path.ends_with(".zst");
  const BytesPtr bytes = packed ? open_unpacked(path) : Bytes::open(path);
  const auto as_told = [&](const std::string& known) -> const Kind& {
    if (!dtype.empty() && dtype != known)
      refuse(path, ": dtype is '", dtype, "', its header says ", known, "; leave dtype out");
    return kind_of(known);
  };
  if (const char* known = kind_in_header(*bytes))
    return {Bytes::behind(bytes, kHeaderBytes), as_told(known)};
  if (const auto indexed = megatron_tokens(bytes)) return {indexed->bytes, as_told(indexed->dtype)};
  refuse_formats(*bytes, "token ids alone: write the ids with NumPy's tofile");
  const Kind& kind = kind_of(dtype.empty() ? "u16" : dtype);
  if (bytes->size() % kind.bytes)
    refuse(path, ": ", bytes->size(), " bytes are no whole number of ", kind.name,
           " tokens: the file is cut short, or dtype is wrong");
  return {bytes, kind};
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const std::string dtype = options.text("dtype", "");
  if (!dtype.empty()) kind_of(dtype);
  const int64_t length = options.integer("length", 0);
  const Tokens first = tokens_in(path, dtype);
  const Kind& kind = first.kind;
  std::vector files{first.bytes};
  for (const std::string& name : options.texts("more")) {
    const Tokens next = tokens_in(name, dtype);
    if (&next.kind != &kind)
      refuse(name, ": its tokens are ", next.kind.name, ", those of ", path, " ", kind.name,
             "; give files of one kind");
    files.push_back(next.bytes);
  }
  const BytesPtr bytes = files.size() == 1 ? files[0] : std::make_shared<Bytes>(files);
  const auto count = static_cast<int64_t>(bytes->size() / kind.bytes);
  check_length(bytes->label(), length, count);
  const size_t window = static_cast<size_t>(length) * kind.bytes;
  const auto column = [&](const char* name, uint64_t offset) {
    return Column{{name, {length}, kind.elements}, bytes, offset, kind.bytes, window};
  };
  auto set =
      std::make_unique<Rows>(std::vector{column("x", 0), column("y", kind.bytes)}, count - length);
  set->window = length;
  return set;
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "tokens", "0.1.0",
           "Files of token ids alone, such as nanoGPT's train.bin", orr::Reader<data::open>::entry,
           1, {{"data", 1, 1}})
