// SPDX-License-Identifier: Apache-2.0
//
// Looking into programs: values that a step prints or records.
#include "edit/metric_name.h"
#include "lua/call.h"
#include "run/probe.h"
#include "run/watched.h"

namespace orrery::lua {
namespace {

std::string in_region(const std::string& name) {
  const std::string region = regions().empty() ? "" : regions().back();
  return region.empty() ? name : region + "." + name;
}

// Adds the value at stack index 1 to the results of the program that is being traced; pushes what
// stands for it from now on.
void watch_here(lua_State* L, const std::string& name, bool prints) {
  if (name.find('\n') != std::string::npos)
    fail(ORR_INVALID, "the name '{}' has several lines, expected one such as \"hidden\"", name);
  if (!prints) check_metric_name(in_region(name) + ".mean", "watch: the name");
  const ValueId x = value_at(L, 1);
  Program& p = program_here(L);
  const std::string type = to_string(p.type(x));
  const std::string label = p.site().prefix() + (name.empty() ? type : name + " " + type);
  watch(p, x, {in_region(name), label, prints});
  push_tensor(L, name.empty() ? x : offer(p, x, in_region(name)));
}

// The tensor at stack index 1 outside of a trace.
HostTensor concrete(lua_State* L) {
  if (const auto* ref = test<StateRef>(L, 1)) {
    materialize({ref->state});
    return read_state(*ref->state);
  }
  if (const auto* host = test<Host>(L, 1)) return host->value;
  fail(ORR_INVALID, "{} has no numbers outside of a traced function", describe(L, 1));
}

std::string told(lua_State* L, Index) {
  const HostTensor value = concrete(L);
  return to_string(value.type) + ": " + statistics_text(value);
}

Pushed print(lua_State* L, Index x, const std::string& name) {
  if (Trace::current()) {
    watch_here(L, name, true);
  } else {
    const HostTensor value = concrete(L);
    const std::string type = to_string(value.type), line = user_line(L);
    print_line((line.empty() ? "" : line + ": ") + (name.empty() ? type : name + " " + type) +
               ": " + statistics_text(value));
    lua_pushvalue(L, x);
  }
  return {1};
}

Pushed record(lua_State* L, Index, const std::string& name) {
  if (name.empty()) fail(ORR_INVALID, "watch: the name is empty, expected one such as \"hidden\"");
  watch_here(L, name, false);
  return {1};
}

// The results of a module, each by a name of its own.
Pushed results(lua_State* L, const std::string& path) {
  const int last = lua_gettop(L);
  if (!probed().empty() && Trace::current())
    for (int i = 2; i <= last; ++i)
      if (test<Tensor>(L, i)) {
        push_tensor(L, offer(program_here(L), value_at(L, i), path));
        lua_replace(L, i);
      }
  return {last - 1};
}

}  // namespace

std::vector<Api> watch_api() {
  return {
      {"orrery.print(x: Tensor, name: string = '') -> Tensor; Returns `x`. In a traced function "
       "every run of the program prints, from rank 0, one line about `x` of the whole batch: line, "
       "module path, dtype and shape; mean, standard deviation, least and greatest of the finite "
       "elements; how many are NaN or infinite; the first elements, of the first sample. "
       "Elsewhere it prints a HostTensor or a State now; states that ranks hold in parts are read "
       "together, so all ranks call it.",
       call<print>},
      {"orrery.watch(x: Tensor, name: string) -> Tensor; Returns `x`. Every run of the traced "
       "program records the statistics of `x` over the whole batch: result:get and observers have "
       "NAME.mean, .std, .min, .max (of the finite elements), .nan and .infinite (how many there "
       "are). NAME is the module path and `name`; \"#2\" is added to the second value of a name.",
       call<record>},
      {"engine.told(x: any) -> string; dtype, shape and statistics of a HostTensor or a State.",
       call<told>},
      {"engine.results(path: string, ...) -> any ...; The results of the module at this "
       "path, which steps may be asked for by Run:probe.",
       call<results>},
  };
}

}  // namespace orrery::lua
