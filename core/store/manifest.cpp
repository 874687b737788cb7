// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/digest.h"
#include "base/error.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "orrery-checkpoint";
constexpr int kVersion = 3;    // 1 and 2 had whole tensors in two files
constexpr int kMostDepth = 5;  // of braces and brackets
constexpr const char* kFast = "fast";
constexpr const char* kRemedy = "; restore the checkpoint from a copy or load an earlier one";

// The digest member and the brace that end the JSON object which begins with `body`.
std::string seal(const std::string& body) {
  Digest digest;
  digest.add(body.data(), body.size());
  return fmt::format(",\n  \"xxh3_64\": \"{}\"\n}}\n", digest.text());
}

void check_version(const Json& json, const std::string& label) {
  auto format = json.find("format");
  if (format == json.end() || *format != kFormat)
    fail(ORR_FAILED, "{}: format is not \"{}\"; give the directory of a checkpoint", label,
         kFormat);
  auto version = json.find("version");
  if (version == json.end() || *version != kVersion)
    fail(ORR_FAILED,
         "{}: version {} cannot be read, only {}; load it with the release that wrote it", label,
         version == json.end() ? "is missing and" : version->dump(), kVersion);
}

// Whether the text ends as one that was sealed, and then whether its digest is that of the text.
struct Seal {
  bool is_there = false, fits = false;
};
Seal look_at_seal(const std::string& text) {
  const std::string any = seal("");
  const size_t digits = any.find(": \"") + 3;  // where the digest begins
  if (text.size() < any.size()) return {};
  const size_t body = text.size() - any.size();
  return {text.compare(body, digits, any, 0, digits) == 0,
          text.compare(body, any.size(), seal(text.substr(0, body))) == 0};
}

// Whether a seal that does not fit shows damage: another release may seal in another way, and a
// file of another program does not.
bool must_fit(const Json& json, const Seal& seal) {
  const auto format = json.find("format"), version = json.find("version");
  if (format != json.end() && *format != kFormat) return seal.is_there;
  return version == json.end() || !version->is_number() || *version == kVersion;
}

// Whether the text is nested too deeply to be a manifest. This is checked first, because the JSON
// parser takes memory for every level.
bool too_deep(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > kMostDepth) return true;
  }
  return false;
}

uint64_t count_at(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number_unsigned()) throw std::out_of_range(name);
  return value;
}

int64_t whole_at(const Json& json, const char* name) {
  const uint64_t value = count_at(json, name);
  if (value > INT64_MAX) throw std::out_of_range(name);
  return static_cast<int64_t>(value);
}

// Checks that the path is one of a file in a numbered folder of the directory.
std::string file_path(const std::string& path) {
  const size_t slash = path.find('/');
  const std::string name = slash == path.npos ? "" : path.substr(slash + 1);
  if (path.size() > 255 || slash == 0 || path.find_first_not_of("0123456789") != slash ||
      name.empty() || name[0] == '.' || name.find_first_of(std::string("/\0", 2)) != name.npos)
    throw std::out_of_range("files");
  return path;
}

Dims dims_of(const Json& json) {
  Dims dims;
  for (const Json& extent : json) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > INT64_MAX)
      throw std::out_of_range("dims");
    dims.push_back(extent.get<int64_t>());
  }
  return dims;
}

nlohmann::ordered_json json_of(const CheckpointFiles& files) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (auto& [path, file] : files)
    json[path] = {{"bytes", file.bytes}, {"xxh3_64", file.digest}, {"offsets", file.offsets}};
  return json;
}

CheckpointFiles files_of(const Json& json) {
  CheckpointFiles files;
  for (auto& [path, file] : json.items()) {
    FileFacts& facts = files[file_path(path)];
    facts.bytes = count_at(file, "bytes"), facts.digest = file.at("xxh3_64");
    for (auto& [name, offset] : file.at("offsets").items()) facts.offsets[name] = dims_of(offset);
  }
  return files;
}

TensorTypes types_of(const Json& json) {
  TensorTypes types;
  for (auto& [name, tensor] : json.items()) {
    Type& type = types[name];
    type = {dtype_from_name(tensor.at("dtype")), dims_of(tensor.at("shape"))};
    int64_t bytes = orr_dtype_bytes(type.dtype);
    if (!type.dtype || type.dims.size() > ORR_MAX_RANK) throw std::out_of_range("tensors");
    for (int64_t extent : type.dims)
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes))
        throw std::out_of_range("tensors");
  }
  return types;
}

}  // namespace

std::string render_manifest(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["step"] = manifest.facts.step;
  json["microbatches"] = manifest.facts.microbatches;
  json["seed"] = manifest.facts.seed;
  json["reduce"] = manifest.facts.fast_sums ? kFast : "canonical";
  json["extra"] = manifest.facts.extra;
  try {
    json["tensors"] = nlohmann::ordered_json::object();
    for (auto& [name, type] : manifest.tensors)
      json["tensors"][name] = {{"dtype", dtype_name(type.dtype)}, {"shape", type.dims}};
    json["files"] = json_of(manifest.files);
    std::string text = json.dump(2);
    text.erase(text.size() - 2);  // "\n}"
    if (text.size() > kMostManifestBytes / 2)
      fail(ORR_INVALID,
           "a checkpoint's manifest of {} bytes is too long; keep its extra text of {} bytes short",
           text.size(), manifest.facts.extra.size());
    return text + seal(text);
  } catch (const Json::exception&) {
    fail(ORR_INVALID, "a checkpoint's extra text must be UTF-8; encode it, for example as base64");
  }
}

std::string to_text(const CheckpointFiles& files) {
  Json json = Json::object();
  for (auto& [name, file] : files)
    json[name] = {file.bytes, file.digest, file.offsets, file.elements};
  return json.dump();
}

CheckpointFiles files_in(const std::string& text) {
  CheckpointFiles files;
  const Json json = Json::parse(text);  // it must outlive the loop
  for (auto& [name, file] : json.items()) files[name] = {file[0], file[1], file[2], file[3]};
  return files;
}

Manifest parse_manifest(const std::string& text, const std::string& label) {
  Json json = too_deep(text) ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object()) fail_damaged("{} is not a JSON object{}", label, kRemedy);
  if (const Seal seal = look_at_seal(text); !seal.fits && must_fit(json, seal))
    fail_damaged("{} was altered: its text does not match its own digest{}", label, kRemedy);
  check_version(json, label);
  Manifest manifest;
  try {
    manifest.facts.step = whole_at(json, "step");
    manifest.facts.microbatches = whole_at(json, "microbatches");
    manifest.facts.seed = count_at(json, "seed");
    manifest.facts.fast_sums = json.value("reduce", "") == kFast;  // older ones do not say
    manifest.facts.extra = json.at("extra");
    manifest.tensors = types_of(json.at("tensors"));
    manifest.files = files_of(json.at("files"));
  } catch (const std::exception&) {
    fail(ORR_FAILED, "{}: a field is missing, of the wrong type or out of range{}", label, kRemedy);
  }
  return manifest;
}

std::string read_manifest_text(const File& file) {
  if (file.size() > kMostManifestBytes)
    fail(ORR_FAILED, "{} has {} bytes, more than any manifest{}", file.label(), file.size(),
         kRemedy);
  std::string text(file.size(), '\0');
  file.read(text.data(), text.size(), 0);
  return text;
}

bool looks_like_manifest(const std::string& text) {
  return text.find(fmt::format("\"format\": \"{}\"", kFormat)) != std::string::npos;
}

bool begins_as_manifest(const std::string& text) {
  const std::string begin = fmt::format("{{\n  \"format\": \"{}\"", kFormat);
  return text.size() < begin.size() ? begin.starts_with(text) : text.starts_with(begin);
}

}  // namespace orrery
