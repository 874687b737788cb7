// SPDX-License-Identifier: Apache-2.0
#include "store/manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "store/digest.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "orrery-checkpoint";
constexpr int kVersion = 1;
constexpr const char* kRemedy = "; restore the checkpoint from a copy or load an earlier one";

// Closes the object that `body` leaves open.
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

void check_seal(const std::string& text, const std::string& label) {
  size_t length = seal("").size();
  size_t body = text.size() < length ? 0 : text.size() - length;
  if (text.substr(body) != seal(text.substr(0, body)))
    fail(ORR_FAILED, "{} was altered: its text does not match its own digest{}", label, kRemedy);
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
    return text + seal(text);
  } catch (const Json::exception&) {
    fail(ORR_INVALID, "a checkpoint's extra text must be UTF-8; encode it, for example as base64");
  }
}

Manifest parse_manifest(const std::string& text, const std::string& label) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail(ORR_FAILED, "{} is not a JSON object{}", label, kRemedy);
  check_version(json, label);
  check_seal(text, label);
  Manifest manifest;
  try {
    manifest.facts.step = json.at("step");
    manifest.facts.microbatches = json.at("microbatches");
    manifest.facts.seed = json.at("seed");
    manifest.facts.extra = json.at("extra");
    for (const char* name : {kModelFile, kOptimizerFile}) {
      const Json& file = json.at("files").at(name);
      manifest.files[name] = {file.at("bytes"), file.at("xxh3_64")};
    }
  } catch (const Json::exception&) {
    fail(ORR_FAILED, "{}: a field is missing or of the wrong type{}", label, kRemedy);
  }
  return manifest;
}

bool looks_like_manifest(const std::string& text) {
  return text.find(fmt::format("\"format\": \"{}\"", kFormat)) != std::string::npos;
}

}  // namespace orrery
