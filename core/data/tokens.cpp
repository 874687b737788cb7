// SPDX-License-Identifier: Apache-2.0
#include "data/tokens.h"

#include "base/error.h"
#include "data/columns.h"
#include "data/joined.h"

namespace orrery {
namespace {

DatasetPtr token_file(const std::string& path, const StoredKind& kind, int64_t length) {
  const Bytes bytes = open_bytes(path);
  const auto size = static_cast<uint64_t>(kind.bytes);
  if (bytes.size() % size)
    fail(ORR_INVALID,
         "{}: {} bytes are no whole number of {} tokens: the file is cut short, or "
         "dtype is wrong",
         path, bytes.size(), kind.name);
  return windows_of(bytes, {kind.kind}, 0, static_cast<int64_t>(bytes.size() / size), length, path,
                    "tokens", {});
}

}  // namespace

DatasetPtr token_files(const std::vector<std::string>& paths, Stored kind, int64_t length) {
  std::vector<DatasetPtr> parts;
  for (const std::string& path : paths)
    parts.push_back(token_file(path, stored_kind(kind), length));
  return join(parts, paths);
}

}  // namespace orrery
