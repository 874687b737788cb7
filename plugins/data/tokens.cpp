// SPDX-License-Identifier: Apache-2.0
//
// Files of token ids and nothing else, such as nanoGPT's train.bin, as fields x and y (x one token
// later). They are read a window at a time, so that they may be larger than the memory; those whose
// name ends in .gz are unpacked into memory. The option `length` is the tokens of a window, `dtype`
// how a token is stored, `more` lists the files that follow the first: windows run from one file
// into the next.
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

BytesPtr tokens_in(const std::string& path, const Kind& kind) {
  // By its name: the first tokens may be any bytes.
  const BytesPtr bytes = path.ends_with(".gz") ? open_unpacked(path) : Bytes::open(path);
  if (bytes->size() % kind.bytes)
    refuse(path, ": ", bytes->size(), " bytes are no whole number of ", kind.name,
           " tokens: the file is cut short, or dtype is wrong");
  return bytes;
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const Kind& kind = kind_of(options.text("dtype", "u16"));
  const int64_t length = options.integer("length", 0);
  std::vector files{tokens_in(path, kind)};
  for (const std::string& next : options.texts("more")) files.push_back(tokens_in(next, kind));
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
