// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "../refuse.h"
#include "../small_text.h"

namespace data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void refuse_splits(const std::string& path, const std::string& split,
                                const std::vector<std::string>& splits) {
  if (split.empty())
    refuse(path, ": it has several splits; name one, such as split = '", splits[0],
           "': ", listed(splits));
  refuse(path, ": it has no split '", split, "'; it has ", listed(splits));
}

Json json_of(const std::string& path) {
  Json json = Json::parse(small_text(path), nullptr, false);
  if (!json.is_object()) refuse(path, ": it is no object of JSON; restore it from a copy");
  return json;
}

// Of DatasetDict.save_to_disk: a directory for each split.
std::vector<std::string> splits_in(const std::string& dict) {
  const Json json = json_of(dict);
  std::vector<std::string> splits;
  for (const Json& each : json.value("splits", Json()))
    if (each.is_string()) splits.push_back(each.get<std::string>());
  if (splits.empty()) refuse(dict, ": it lists no splits; save the dataset again");
  return splits;
}

// Of Dataset.save_to_disk: state.json lists the files.
std::vector<std::string> saved_files(const std::string& directory) {
  const std::string state = directory + "/state.json";
  const Json json = json_of(state);
  if (json.contains("_indices_data_files") && !json["_indices_data_files"].is_null())
    refuse(state, ": the dataset is a selection of its files' rows, by indices beside them: call ",
           "flatten_indices() before save_to_disk");
  std::vector<std::string> files;
  const auto list = json.find("_data_files");
  for (const Json& each : list != json.end() && list->is_array() ? *list : Json::array()) {
    const auto name = each.is_object() ? each.find("filename") : each.end();
    if (!each.is_object() || name == each.end() || !name->is_string())
      refuse(state, ": _data_files has an entry without a filename; restore it from a copy");
    files.push_back(directory + "/" + name->get<std::string>());
  }
  if (files.empty()) refuse(state, ": it lists no _data_files; save the dataset again");
  return files;
}

// The files of one split, of which each may be one of several parts.
struct Group {
  std::vector<std::string> files;
  size_t parts = 0;  // as their names say; 0: they say nothing
};

// By what their names have before "-00000-of-00002".
std::map<std::string, Group> grouped(const std::vector<fs::path>& paths, bool by_name) {
  static const std::regex part("(.*)-[0-9]{5}-of-([0-9]{5})(-[0-9a-f]{16})?");
  std::map<std::string, Group> groups;
  for (const fs::path& path : paths) {
    std::smatch found;
    const std::string stem = path.stem().string();
    const bool is_part = std::regex_match(stem, found, part);
    Group& group = groups[is_part ? found[1].str() : by_name ? stem : ""];
    group.files.push_back(path.string());
    if (is_part) group.parts = std::stoul(found[2]);
  }
  return groups;
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".parquet" || ending == ".arrow" || ending == ".feather")
      paths.push_back(entry.path());
  }
  if (error) refuse(directory, " cannot be listed: ", error.message());
  std::sort(paths.begin(), paths.end());
  if (paths.empty())
    refuse(directory,
           ": there is no .parquet, .arrow or .feather file; give the directory of them");
  return paths;
}

// In a cache of datasets the name of a file is "NAME-SPLIT".
bool is_split(const std::string& group, const std::string& split) {
  return group == split || group.ends_with("-" + split);
}

std::vector<std::string> files_of_split(const std::string& directory, const std::string& split) {
  const bool cached = fs::exists(directory + "/dataset_info.json");
  const std::map<std::string, Group> groups = grouped(files_in(directory), cached);
  std::vector<std::string> names;
  const Group* chosen = nullptr;
  for (const auto& [name, group] : groups) {
    names.push_back(name);
    const bool fits = split.empty() ? groups.size() == 1 : is_split(name, split);
    if (fits && chosen)
      refuse(directory, ": several of its files are of split '", split,
             "': give the files as a list");
    if (fits) chosen = &group;
  }
  if (!chosen) refuse_splits(directory, split, names);
  if (chosen->parts && chosen->files.size() != chosen->parts)
    refuse(directory, ": it has ", chosen->files.size(), " of ", chosen->parts, " parts, such as ",
           chosen->files[0], "; fetch those that are missing");
  return chosen->files;
}

}  // namespace

std::vector<std::string> column_files(const std::string& path, const std::string& split) {
  if (!fs::is_directory(path)) {
    if (!split.empty())
      refuse(path, ": split = '", split, "' is of a directory; leave it out for a file");
    return {path};
  }
  if (fs::exists(path + "/dataset_dict.json")) {
    const std::vector<std::string> splits = splits_in(path + "/dataset_dict.json");
    if (!std::count(splits.begin(), splits.end(), split)) refuse_splits(path, split, splits);
    return saved_files(path + "/" + split);
  }
  if (fs::exists(path + "/state.json")) {
    if (!split.empty()) refuse(path, ": it has no splits; leave split = '", split, "' out");
    return saved_files(path);
  }
  return files_of_split(path, split);
}

}  // namespace data
