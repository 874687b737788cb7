// SPDX-License-Identifier: Apache-2.0
//
// The samples of WebDataset's shards: tar archives in which files of one name but different
// endings, one after another, are a sample.
#pragma once

#include <string>
#include <vector>

#include "../bytes.h"

namespace data {

// One file of a sample.
struct Member {
  uint64_t offset = 0, size = 0;
  std::string ending;  // "jpg"
};

class Shards {
 public:
  // Of every sample the file with one of the endings of each field, {"jpg", "png"}. Throws Error
  // for a sample that has none of a field, or two.
  Shards(const std::vector<std::string>& paths,
         const std::vector<std::vector<std::string>>& endings);

  size_t samples() const { return samples_.size(); }
  const Member& member(size_t sample, size_t field) const {
    return samples_[sample].members[field];
  }
  // Its contents, which errors call "shard.tar: 0001.jpg". [any thread]
  BytesPtr read(size_t sample, size_t field) const;
  std::string label(size_t sample, size_t field) const;

 private:
  struct Shard {
    std::string path;
    BytesPtr unpacked;  // in memory; null: read of the file, which is not kept open
  };
  struct Sample {
    size_t shard;
    std::string key;
    std::vector<Member> members;
  };
  void add_shard(const std::string& path, const std::vector<std::vector<std::string>>& endings);
  void check(const Sample& sample, const std::vector<std::vector<std::string>>& endings) const;

  std::vector<Shard> shards_;
  std::vector<Sample> samples_;
};

}  // namespace data
