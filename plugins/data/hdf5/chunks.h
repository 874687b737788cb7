// SPDX-License-Identifier: Apache-2.0
//
// What the library does not look at before it reads a chunk: in a damaged file a chunk may have
// fewer bytes than its checksum or its values, and the library reads beyond them. To know, those
// that are packed by gzip are unpacked once more when one of their values is first asked for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "library.h"

namespace data {

class Chunks {
 public:
  // REQUIRES: a Turn.
  Chunks(hid_t set, size_t element_bytes, std::string subject);
  // Throws Error if a chunk that has some of these values is too short. A chunk is looked at once.
  void check(const std::vector<hsize_t>& start, const std::vector<hsize_t>& count);

 private:
  void look_at(const std::vector<hsize_t>& corner);
  void unpack(const std::vector<hsize_t>& corner, hsize_t bytes, hsize_t expected, bool summed);

  const hid_t set_;
  const std::string subject_;
  std::vector<hsize_t> dims_;          // of a chunk; none: there are no chunks
  std::vector<H5Z_filter_t> filters_;  // in the order in which they pack
  hsize_t bytes_ = 0;                  // of a chunk that is not packed
  std::set<std::vector<hsize_t>> seen_;
};

}  // namespace data
