// SPDX-License-Identifier: Apache-2.0
#include "shards.h"

#include <algorithm>
#include <set>
#include <utility>

#include "../refuse.h"
#include "tar.h"

namespace data {
namespace {

// Up to the first dot of the last part of the path, and what is behind it; "" for no such name.
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const size_t last = name.rfind('/') + 1;  // of npos 0
  const size_t dot = name.find('.', last);
  if (dot == name.npos || dot == last) return {};
  std::string ending = name.substr(dot + 1);
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return {name.substr(0, dot), std::move(ending)};
}

std::string listed(const std::vector<std::string>& endings) {
  std::string text;
  for (const std::string& each : endings) text += (text.empty() ? "." : ", .") + each;
  return text;
}

}  // namespace

Shards::Shards(const std::vector<std::string>& paths,
               const std::vector<std::vector<std::string>>& endings) {
  for (const std::string& path : paths) add_shard(path, endings);
  if (samples_.empty()) refuse(paths[0], ": there are no samples, of files such as 0001.jpg");
}

void Shards::add_shard(const std::string& path,
                       const std::vector<std::vector<std::string>>& endings) {
  const BytesPtr bytes = open_unpacked(path);
  const size_t shard = shards_.size(), first = samples_.size();
  shards_.push_back({path, bytes->in_file() ? nullptr : bytes});
  std::set<std::string> seen;  // of the sample under way
  for (const TarEntry& entry : tar_entries(*bytes)) {
    const auto [key, ending] = key_and_ending(entry.name);
    // Such as __index__.json, which is about the shard.
    if (key.empty() || key.starts_with("__")) continue;
    if (samples_.size() == first || samples_.back().key != key) {
      if (samples_.size() > first) check(samples_.back(), endings);
      samples_.push_back({shard, key, std::vector<Member>(endings.size())});
      seen.clear();
    }
    if (!seen.insert(ending).second)
      refuse(path, ": two files of sample '", key, "' end in .", ending);
    for (size_t f = 0; f < endings.size(); ++f) {
      Member& member = samples_.back().members[f];
      if (!std::count(endings[f].begin(), endings[f].end(), ending)) continue;
      if (!member.ending.empty())
        refuse(path, ": sample '", key, "' has both .", member.ending, " and .", ending);
      member = {entry.offset, entry.size, ending};
    }
  }
  if (samples_.size() > first) check(samples_.back(), endings);
}

void Shards::check(const Sample& sample,
                   const std::vector<std::vector<std::string>>& endings) const {
  for (size_t f = 0; f < endings.size(); ++f)
    if (sample.members[f].ending.empty())
      refuse(shards_[sample.shard].path, ": sample '", sample.key, "' has no file ",
             listed(endings[f]), "; write the shard without it");
}

std::string Shards::label(size_t sample, size_t field) const {
  const Sample& of = samples_[sample];
  return shards_[of.shard].path + ": " + of.key + "." + of.members[field].ending;
}

BytesPtr Shards::read(size_t sample, size_t field) const {
  const Shard& shard = shards_[samples_[sample].shard];
  const Member& place = member(sample, field);
  const BytesPtr from = shard.unpacked ? shard.unpacked : Bytes::open(shard.path);
  check_memory(place.size, label(sample, field));
  std::vector<std::byte> bytes(place.size);
  if (place.offset + place.size > from->size())
    refuse(shard.path, " became shorter since it was opened; restore it from a copy");
  from->read(bytes.data(), bytes.size(), place.offset);
  return std::make_shared<Bytes>(std::move(bytes), label(sample, field));
}

}  // namespace data
