// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "base/text_file.h"
#include "plan/machine_model.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

// Reads the fields of a JSON object, each once. Errors name the path of a field.
class Fields {
 public:
  Fields(const std::string& file, const std::string& path, const Json& json)
      : file_(file), path_(path), json_(json) {
    if (!json.is_object())
      fail(ORR_INVALID, "machine '{}': {} must be an object", file,
           path.empty() ? "the file" : path);
  }

  // `most`: the largest that is allowed.
  double number(const std::string& name, double most = INFINITY) {
    const Json& value = at(name);
    if (!value.is_number() || value.get<double>() <= 0)
      fail(ORR_INVALID, "machine '{}': {}{} is {}, but must be a number above 0", file_, path_,
           name, value.dump());
    if (value.get<double>() > most)
      fail(ORR_INVALID, "machine '{}': {}{} is {}, but must be at most {}", file_, path_, name,
           value.get<double>(), most);
    return value.get<double>();
  }
  int whole(const std::string& name) {
    const double value = number(name);
    if (value != std::floor(value) || value > 1e6)
      fail(ORR_INVALID, "machine '{}': {}{} is {}, but must be a whole number up to a million",
           file_, path_, name, value);
    return static_cast<int>(value);
  }
  bool has(const std::string& name) const { return json_.contains(name); }
  Fields object(const std::string& name) { return {file_, path_ + name + ".", at(name)}; }

  // Throws Error if the object has a field that was not read.
  void end() const {
    for (auto& [name, value] : json_.items())
      if (std::find(read_.begin(), read_.end(), name) == read_.end())
        fail(ORR_INVALID, "machine '{}': there is no field {}{}{}; there are: {}", file_, path_,
             name, did_you_mean(name, read_), join(read_, ", "));
  }

  // That of a field which may be left out, else 0.
  double number_if_there(const std::string& name, double most = INFINITY) {
    read_.push_back(name);
    return has(name) ? number(name, most) : 0;
  }
  // The objects of a list that may be left out.
  std::vector<Fields> objects_if_there(const std::string& name) {
    read_.push_back(name);
    std::vector<Fields> found;
    if (!has(name)) return found;
    if (!json_.at(name).is_array())
      fail(ORR_INVALID, "machine '{}': {}{} is {}, but must be a list of objects", file_, path_,
           name, json_.at(name).dump());
    for (const Json& one : json_.at(name))
      found.emplace_back(file_, fmt::format("{}{}[{}].", path_, name, found.size()), one);
    return found;
  }
  std::string text_if_there(const std::string& name) {
    read_.push_back(name);
    if (!has(name)) return "";
    if (!json_.at(name).is_string())
      fail(ORR_INVALID, "machine '{}': {}{} is {}, but must be a text", file_, path_, name,
           json_.at(name).dump());
    return json_.at(name).get<std::string>();
  }
  // All fields of the object, whatever their names are.
  std::map<std::string, double> numbers() {
    std::map<std::string, double> found;
    for (auto& [name, value] : json_.items()) found[name] = number(name);
    return found;
  }
  // Rates by dtype, each a number or [[FLOPs, FLOP/s], ...].
  std::map<std::string, Rate> rates() {
    std::map<std::string, Rate> found;
    for (const char* dtype : {"f64", "f32", "f16", "bf16", "f8"}) {
      read_.push_back(dtype);
      if (!has(dtype)) continue;
      const Json& value = json_.at(dtype);
      found.emplace(dtype, value.is_array() ? Rate(points(dtype, value)) : Rate(number(dtype)));
    }
    end();
    return found;
  }

 private:
  std::vector<std::pair<double, double>> points(const std::string& name, const Json& list) const {
    std::vector<std::pair<double, double>> points;
    for (const Json& pair : list) {
      const bool numbers =
          pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
      const double flops = numbers ? pair[0].get<double>() : 0;
      const double rate = numbers ? pair[1].get<double>() : 0;
      if (flops <= (points.empty() ? 0 : points.back().first) || rate <= 0)
        fail(ORR_INVALID,
             "machine '{}': {}{} has {}: write [FLOPs of a launch, FLOP/s], both above 0, in "
             "ascending order of FLOPs",
             file_, path_, name, pair.dump());
      points.emplace_back(flops, rate);
    }
    if (points.empty())
      fail(ORR_INVALID, "machine '{}': {}{} is empty; write a number or [[FLOPs, FLOP/s], ...]",
           file_, path_, name);
    return points;
  }
  const Json& at(const std::string& name) {
    read_.push_back(name);
    if (!json_.contains(name))
      fail(ORR_INVALID, "machine '{}': the field {}{} is missing; add it", file_, path_, name);
    return json_.at(name);
  }

  std::string file_, path_;
  const Json& json_;
  std::vector<std::string> read_;
};

Link link_of(Fields fields) {
  Link link{fields.number("latency"), fields.number("bandwidth"),
            fields.number_if_there("compute", 1), fields.number_if_there("hop")};
  fields.end();
  return link;
}

Tiles tiles_of(Fields fields) {
  Tiles tiles{fields.number("processors"), fields.number("rows"), fields.number("columns"),
              fields.number("half_speed", 1)};
  fields.end();
  return tiles;
}

std::vector<Level> levels_of(const std::string& file, std::vector<Fields> list) {
  std::vector<Level> levels;
  for (Fields& fields : list) {
    Level level{fields.whole("hosts"), fields.number_if_there("latency"),
                fields.number_if_there("oversubscription")};
    fields.end();
    if (level.oversubscription == 0) level.oversubscription = 1;
    if (level.oversubscription < 1)
      fail(ORR_INVALID,
           "machine '{}': levels[{}].oversubscription is {}, but must be at least 1: links of the "
           "hosts / links upwards",
           file, levels.size(), level.oversubscription);
    const int below = levels.empty() ? 1 : levels.back().hosts;
    if (level.hosts % below || level.hosts == below)
      fail(ORR_INVALID,
           "machine '{}': levels[{}].hosts is {}, but must be a multiple of {}: list levels from "
           "the smallest groups of hosts on",
           file, levels.size(), level.hosts, below);
    levels.push_back(level);
  }
  return levels;
}

Machine assumed() {
  Machine m;
  m.name = "assumed";
  m.matrix_flops = {{"f64", 5e10}, {"f32", 1e11}, {"f16", 1e11}, {"bf16", 1e11}, {"f8", 1e11}};
  m.vector_flops = 1e10, m.memory_bandwidth = 1e10, m.cache_bandwidth = 5e10, m.cache_bytes = 2e6;
  m.launch_seconds = 1e-6, m.ranks_per_host = 8;
  m.inside = {2e-6, 5e9}, m.between = {1e-5, 1.25e9};
  m.host = {1e-6, 5e9}, m.disk = {1e-4, 5e8};
  return m;
}

// What only texts say of the machine.
void read_told(Fields& fields, Machine& m) {
  m.about = fields.text_if_there("about");
  if (fields.has("frameworks")) m.frameworks = fields.object("frameworks").numbers();
  if (fields.has("nominal_flops")) m.nominal_flops = fields.object("nominal_flops").rates();
  for (auto& [name, most] : {std::pair{"reserved_bytes", m.memory_bytes},
                             {"time_error", 1.0},
                             {"order_error", 1.0},
                             {"watts", double{INFINITY}},
                             {"price_per_hour", double{INFINITY}},
                             {"storage_bandwidth", double{INFINITY}},
                             {"storage_total", double{INFINITY}},
                             {"restart_seconds", double{INFINITY}},
                             {"repair_hours", double{INFINITY}}})
    if (const double x = fields.number_if_there(name, most)) m.figures[name] = x;
}

Json parse(const std::string& file) {
  constexpr uint64_t most = 1 << 20;
  const std::string text = read_text(file, "--machine " + file, ORR_INVALID, most);
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    fail(ORR_INVALID, "--machine {}: is not JSON: {}; docs/plan.md shows such a file", file,
         e.what());
  }
}

}  // namespace

Machine machine_of(const std::string& file) {
  if (file.empty()) return assumed();
  const Json json = parse(file);
  Fields fields(file, "", json);
  Machine m;
  m.name = file;
  m.matrix_flops = fields.object("matrix_flops").rates();
  if (fields.has("attention_flops")) m.attention_flops = fields.object("attention_flops").rates();
  m.matrix_bandwidth = fields.number_if_there("matrix_bandwidth");
  if (fields.has("matrix_tiles")) m.matrix_tiles = tiles_of(fields.object("matrix_tiles"));
  m.vector_flops = fields.number("vector_flops");
  m.memory_bandwidth = fields.number("memory_bandwidth");
  m.cache_bandwidth = fields.number("cache_bandwidth"),
  m.cache_bytes = fields.number("cache_bytes");
  m.launch_seconds = fields.number("launch_seconds");
  m.ranks_per_host = fields.whole("ranks_per_host");
  if (fields.has("cards_per_host")) m.cards_per_host = fields.whole("cards_per_host");
  if (m.cards_per_host && m.ranks_per_host % m.cards_per_host)
    fail(ORR_INVALID, "machine '{}': cards_per_host is {}, which must divide ranks_per_host, {}",
         file, m.cards_per_host, m.ranks_per_host);
  m.inside = link_of(fields.object("inside")), m.between = link_of(fields.object("between"));
  m.levels = levels_of(file, fields.objects_if_there("levels"));
  m.jitter = fields.number_if_there("jitter", 1);
  if (fields.has("host")) m.host = link_of(fields.object("host"));
  if (fields.has("disk")) m.disk = link_of(fields.object("disk"));
  m.memory_bytes = fields.number_if_there("memory_bytes");
  read_told(fields, m);
  fields.end();
  return m;
}

}  // namespace orrery
