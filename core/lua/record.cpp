// SPDX-License-Identifier: Apache-2.0
//
// What orrery.record (scripts/orrery/record.lua) is made of: one value by one name.
#include <algorithm>

#include "base/text.h"
#include "edit/metric_name.h"
#include "lua/call.h"
#include "program/elements.h"
#include "run/records.h"

namespace orrery::lua {
namespace {

// What to write instead of a value that has no numbers, or not one that is meant.
std::string remedy(lua_State* L, int index) {
  if (test<StateRef>(L, index) || test<Field>(L, index)) return "write :read() behind it";
  if (test<Result>(L, index)) return "write result:mean(), or result:get(name)";
  if (is_tensor(L, index)) return "orrery.watch records values of a traced function";
  if (lua_isboolean(L, index)) return "write 1 or 0";
  if (lua_istable(L, index)) return "write orrery.tensor{...}";
  return "expected a number, a string or a HostTensor";
}

std::string kind_of(lua_State* L, int index) {
  if (lua_type(L, index) == LUA_TNUMBER) return "number";
  if (lua_type(L, index) == LUA_TSTRING) return "text";
  const auto* host = test<Host>(L, index);
  if (!host) return "";
  return host->value.type.elements() == 1 ? "number" : "image";
}

double number_at(lua_State* L, int index) {
  const auto* host = test<Host>(L, index);
  return host ? read_element(host->value.type.dtype, host->value.data<std::byte>())
              : lua_tonumber(L, index);
}

// `as`: the kind that the script asks for; "": that of the value.
void record_value(lua_State* L, const RecordPlace& place, int value, const std::string& as) {
  const std::string own = kind_of(L, value);
  if (own.empty())
    fail(ORR_INVALID, "record: '{}' is {}: {}", place.name, describe(L, value), remedy(L, value));
  const auto* host = test<Host>(L, value);
  if (host && as == "image") return record_image(place, host->value);
  if (host && as == "histogram" && host->value.type.elements() > 0)
    return record_histogram(place, host->value);
  if (!as.empty() && as != own)
    fail(ORR_INVALID, "record: '{}' is {}, which is no {}", place.name,
         host ? to_string(host->value.type) : describe(L, value), as);
  if (own == "number") return record_number(place, number_at(L, value));
  if (own == "text") return record_text(place, to_text(L, value, place.name));
  record_image(place, host->value);
}

int64_t step_of(const RunRef* run, const std::string& name) {
  if (run) return run->run->steps_done();
  if (ordinals().latest_step < 0)
    fail(ORR_INVALID,
         "record: '{}' has no step, for the script has compiled no run whose steps count: write "
         "{{ step = ... }}",
         name);
  return ordinals().latest_step;
}

void record(lua_State* L, Index of, const std::string& name, Index value, int64_t step,
            const std::string& as) {
  if (Trace::current())
    fail(ORR_INVALID,
         "record: '{}' would be recorded when the function is traced, and not when it runs: write "
         "orrery.watch(x, name)",
         name);
  const std::vector<std::string> kinds = {"number", "text", "image", "histogram"};
  if (!as.empty() && std::find(kinds.begin(), kinds.end(), as) == kinds.end())
    fail(ORR_INVALID, "record: '{}': as is '{}'{}; there are: {}", name, as,
         did_you_mean(as, kinds), join(kinds, ", "));
  check_metric_name(name, "record: the name");
  const auto* run = test<RunRef>(L, of);
  record_value(L, {run ? run->told_as : "", step < 0 ? step_of(run, name) : step, name}, value, as);
}

}  // namespace

std::vector<Api> record_api() {
  return {
      {"engine.record(run: any, name: string, value: any, step: integer, as: string); Records a "
       "value of a run, or of the script if that is nil, at a step (-1: the one that it is at) as "
       "'number', 'text', 'image' or 'histogram' ('': by the value).",
       call<record>}};
}

}  // namespace orrery::lua
