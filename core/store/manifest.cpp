// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "store/digest.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "orrery-checkpoint";
constexpr int kVersion = 2;    // 1 had files of fixed names
constexpr int kMostDepth = 4;  // of braces and brackets
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
  if (version == json.end() || (*version != kVersion && *version != 1))
    fail(ORR_FAILED,
         "{}: version {} cannot be read, only 1 and {}; load it with the release that wrote it",
         label, version == json.end() ? "is missing and" : version->dump(), kVersion);
}

void check_seal(const std::string& text, const std::string& label) {
  size_t length = seal("").size();
  size_t body = text.size() < length ? 0 : text.size() - length;
  if (text.substr(body) != seal(text.substr(0, body)))
    fail(ORR_FAILED, "{} was altered: its text does not match its own digest{}", label, kRemedy);
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

// Checks that the name is one of a file in the directory itself.
std::string file_name(const std::string& name) {
  if (name.empty() || name.size() > 255 || name[0] == '.' ||
      name.find_first_of(std::string("/\0", 2)) != std::string::npos)
    throw std::out_of_range("files");
  return name;
}

}  // namespace

std::string render_manifest(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["step"] = manifest.facts.step;
  json["microbatches"] = manifest.facts.microbatches;
  json["seed"] = manifest.facts.seed;
  json["extra"] = manifest.facts.extra;
  for (auto& [name, file] : manifest.files)
    json["files"][name] = {{"bytes", file.bytes}, {"xxh3_64", file.digest}};
  try {
    std::string text = json.dump(2);
    text.erase(text.size() - 2);  // "\n}"
    if (text.size() > kMostManifestBytes / 2)
      fail(ORR_INVALID, "a checkpoint's extra text of {} bytes is too long; keep it below {}",
           manifest.facts.extra.size(), kMostManifestBytes / 4);
    return text + seal(text);
  } catch (const Json::exception&) {
    fail(ORR_INVALID, "a checkpoint's extra text must be UTF-8; encode it, for example as base64");
  }
}

Manifest parse_manifest(const std::string& text, const std::string& label) {
  Json json = too_deep(text) ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ORR_FAILED, "{} is not a JSON object{}", label, kRemedy);
  check_version(json, label);
  check_seal(text, label);
  Manifest manifest;
  try {
    manifest.facts.step = whole_at(json, "step");
    manifest.facts.microbatches = whole_at(json, "microbatches");
    manifest.facts.seed = count_at(json, "seed");
    manifest.facts.extra = json.at("extra");
    for (auto& [name, file] : json.at("files").items())
      manifest.files[file_name(name)] = {count_at(file, "bytes"), file.at("xxh3_64")};
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

}  // namespace orrery
