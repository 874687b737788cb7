// SPDX-License-Identifier: Apache-2.0
//
// ZeRO: each of the ranks that share the batch holds only a piece of what data parallelism holds on
// every rank. Stage 1 cuts the optimizer state; stage 2 also the summed gradients; stage 3 also the
// parameters, which are gathered unit by unit where they are used (FSDP). EXACT: pieces end where
// the blocks of sums end. Rajbhandari et al., SC'20. Units and groups: Zhao et al., "PyTorch FSDP",
// VLDB 2023.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <orrery/sdk/owners.hpp>
#include <orrery/sdk/path.hpp>
#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/strategy.hpp>

#include "gathers.h"

namespace {

constexpr orr_option kOptions[] = {
    {"stage", ORR_ATTR_INT, 0, "1",
     "what lies in pieces: 1 optimizer state, 2 gradients too, 3 parameters too"},
    {"group", ORR_ATTR_INT, 0, "0",
     "ranks that hold one set of pieces; every group has one; 0: all that share the batch"},
    {"cut", ORR_ATTR_TEXT, 0, "flat",
     "flat: even pieces; tensor: whole tensors, dealt by size, for any optimizer"},
    {"bucket", ORR_ATTR_INT, 0, "26214400",
     "bytes of parameters that travel together, stages 1 and 2"},
    {"units", ORR_ATTR_TEXT, 0, "auto",
     "modules that are gathered as one, stage 3: \"blocks.*\"; auto: elements of lists, and what "
     "fills a bucket"},
    {"reshard", ORR_ATTR_INT, 0, "1",
     "stage 3: 1 gathers again for backward, 0 keeps what forward gathered"},
    {"prefetch", ORR_ATTR_INT, 0, "1", "stage 3: units gathered ahead of the one in use"},
    {"each", ORR_ATTR_INT, 0, "0",
     "stages 2, 3: 1 gathers parameters and sends gradients for each microbatch, not once a step"},
    {"offload", ORR_ATTR_TEXT, 0, "none",
     "where what lies in pieces is kept between uses: host memory or disk"},
    {"directory", ORR_ATTR_TEXT, 0, "",
     "of the files of offload = \"disk\"; left out: the run's, or the system's"},
};
constexpr const char* kChoices[std::size(kOptions)] = {
    nullptr, nullptr, "flat,tensor", nullptr,          nullptr,
    nullptr, nullptr, nullptr,       "none,host,disk", nullptr};

struct Editing {
  orr_program* program;
  const orr_edit* edit;
  int64_t stage, group, bucket;
  std::string cut, units, offload, directory;
  orr_shard how{};
  zero::Gathering gathering = {};
  std::vector<orr::Param> params = {};      // in the natural order of names
  std::vector<zero::Sharded> sharded = {};  // those that are no numbers
};

void shard(Editing& e, int32_t parameter) {
  orr::check(e.edit->shard(e.program, parameter, &e.how));
  e.sharded.push_back({parameter, e.how.unit});
}

// The element of a list that the parameter lies in ("blocks.1"); "" if it lies in none.
std::string list_element(const std::string& name) {
  std::string path;
  long number;
  for (const std::string& part : orr::path::cut(name, '.')) {
    path += (path.empty() ? "" : ".") + part;
    if (orr::path::whole_number(part, number)) return path;
  }
  return "";
}

// The element of a list that the parameter lies in, or else the module that has the parameter.
std::string module_of(const std::string& name) {
  const std::string element = list_element(name);
  return element.empty() ? name.substr(0, name.find_last_of('.')) : element;
}

// Returns the module whose parameters are gathered together with this one; "" for the rest of the
// model. `bytes`: of modules.
std::string unit_name(const Editing& e, const std::map<std::string, int64_t>& bytes,
                      const std::string& name) {
  if (e.units == "auto") {
    const std::string module = module_of(name);
    return list_element(name).empty() && bytes.at(module) < e.bucket ? "" : module;
  }
  for (const std::string& pattern : orr::path::cut(e.units, ','))
    if (std::string found = orr::path::front(pattern, name); !found.empty()) return found;
  return "";
}

// Makes a unit of each module, in the order of their first parameters.
void shard_by_module(Editing& e) {
  std::map<std::string, int64_t> bytes;
  for (const orr::Param& p : e.params) bytes[module_of(p.name)] += p.bytes;
  std::vector<std::string> names;
  for (const orr::Param& p : e.params) {
    std::string unit = unit_name(e, bytes, p.name);
    auto at = std::find(names.begin(), names.end(), unit);
    e.how.unit = static_cast<int32_t>(at - names.begin());
    if (at == names.end()) names.push_back(unit);
    shard(e, p.value);
  }
}

// Throws if one of the patterns of `units` matches no parameter.
void check_units(const Editing& e) {
  if (e.units == "auto") return;
  std::set<std::string> modules;
  for (const orr::Param& p : e.params) modules.insert(module_of(p.name));
  for (const std::string& pattern : orr::path::cut(e.units, ',')) {
    const auto matches = [&](const orr::Param& p) {
      return !orr::path::front(pattern, p.name).empty();
    };
    if (std::any_of(e.params.begin(), e.params.end(), matches)) continue;
    std::string all;
    for (const std::string& module : modules) all += (all.empty() ? "" : ", ") + module;
    throw orr::Error(ORR_INVALID,
                     "units '" + pattern + "' matches no parameter; there are modules " + all);
  }
}

// Makes units of consecutive parameters, each of about `bucket` bytes. A parameter that fills one
// alone is not joined with those of another module: its gradient, which is complete much earlier or
// later than theirs, would occupy the bucket's memory meanwhile.
void shard_by_size(Editing& e) {
  int64_t bytes = 0;
  std::string last;
  for (const orr::Param& p : e.params) {
    const std::string module = module_of(p.name);
    if (bytes >= e.bucket || (bytes > 0 && p.bytes >= e.bucket && module != last))
      ++e.how.unit, bytes = 0;
    shard(e, p.value);
    bytes += p.bytes, last = module;
  }
}

// Gives each parameter as a whole to one owner.
void shard_by_tensor(Editing& e) {
  std::vector<int64_t> bytes;
  for (const orr::Param& p : e.params) bytes.push_back(p.bytes);
  std::vector<orr::Owned> dealt =
      orr::deal_to_owners(bytes, static_cast<int32_t>(e.group), e.bucket);
  for (size_t i = 0; i < dealt.size(); ++i) {
    e.how.unit = dealt[i].unit, e.how.owner = dealt[i].owner;
    shard(e, e.params[i].value);
  }
}

void check_options(const Editing& e) {
  auto refuse = [](const std::string& why) { throw orr::Error(ORR_INVALID, why); };
  if (e.stage < 1 || e.stage > 3)
    refuse("there is no stage " + std::to_string(e.stage) + ": one of 1, 2, 3");
  if (e.bucket < 1) refuse("bucket of " + std::to_string(e.bucket) + " bytes: give at least 1");
  if (e.stage < 3 && e.units != "auto") refuse("units are for stage 3, which gathers parameters");
  if (e.cut == "tensor" && e.units != "auto") refuse("units are for cut = \"flat\"");
  if (e.gathering.ahead < 0)
    refuse("prefetch of " + std::to_string(e.gathering.ahead) + " units: give 0 or more");
  if (e.stage < 3 && e.gathering.ahead != 1)
    refuse("prefetch is for stage 3, which gathers parameters");
  if (e.stage < 2 && e.how.each)
    refuse("each is for stages 2 and 3, in which gradients or parameters lie in pieces");
  if (e.offload != "disk" && !e.directory.empty())
    refuse("a directory is for offload = \"disk\", which makes files");
}

// Offloads what lies in pieces: the optimizer state, and the parameters if forward does not read
// them whole, which the core finds out. Scalars are not offloaded.
void offload_pieces(Editing& e) {
  const auto visit = [](void* arg, int32_t value, const orr_value_info* info) -> orr_status* {
    const auto* e = static_cast<const Editing*>(arg);
    if (info->type.rank == 0) return nullptr;
    return e->edit->offload(e->program, value, e->offload == "disk" ? ORR_TIER_DISK : ORR_TIER_HOST,
                            e->directory.c_str());
  };
  const uint32_t roles = 1u << ORR_ROLE_STATE | 1u << ORR_ROLE_PARAM;
  orr::check(e.edit->each(e.program, roles, &e, visit));
}

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = std::size(kOptions), out->options = kOptions;
    orr::tell_choices(out, kChoices);
    out->provides = "sharded state", out->requires_ = "shares of the batch",
    out->conflicts = "sharded state";
  });
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options* o) {
  return orr::guard([&] {
    auto integer = [&](const char* name, int64_t fallback) {
      return o->integer(o->self, name, fallback);
    };
    Editing e{program,
              edit,
              integer("stage", 1),
              integer("group", 0),
              integer("bucket", 26214400),
              o->text(o->self, "cut", "flat"),
              o->text(o->self, "units", "auto"),
              o->text(o->self, "offload", "none"),
              o->text(o->self, "directory", "")};
    e.gathering = {integer("prefetch", 1), integer("reshard", 1) != 0, integer("each", 0) != 0};
    e.how = {
        sizeof e.how, static_cast<int32_t>(e.stage), "batch", 0, -1, 0, 0, e.gathering.each, 0, 0};
    check_options(e);
    int32_t ranks = edit->axis_size(program, "batch");
    if (e.group == 0) e.group = ranks;
    if (e.group != ranks) {
      orr::check(edit->halve(program, "batch", "zero.replica", "zero.shard",
                             static_cast<int32_t>(e.group)));
      e.how.axis = "zero.shard";
    }
    e.params = orr::params_of(program, edit);
    check_units(e);
    if (e.cut == "tensor")
      shard_by_tensor(e);
    else if (e.stage == 3)
      shard_by_module(e);
    else
      shard_by_size(e);
    if (e.offload != "none") offload_pieces(e);
    if (e.stage == 3)
      orr::Program(program, edit)
          .at_last([sharded = e.sharded, how = e.gathering](const orr::Program& step) {
            zero::write_gathers(step, sharded, how);
          });
  });
}

orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] { out->bytes_sent = orr::bytes_of_pieces(*query); });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "zero", "0.1.0",
           "ZeRO and FSDP: optimizer state, gradients, parameters in pieces",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
