// SPDX-License-Identifier: Apache-2.0
#include "lua/mapped.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "lua/drawn.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

constexpr uint32_t kMapped = 0x3d7be215;

// How many maps the script has made before: each draws numbers of its own.
int64_t next_ordinal(lua_State* L) {
  constexpr const char* kCount = "orrery.maps";
  lua_getfield(L, LUA_REGISTRYINDEX, kCount);
  const lua_Integer before = lua_tointeger(L, -1);
  lua_pop(L, 1);
  lua_pushinteger(L, before + 1);
  lua_setfield(L, LUA_REGISTRYINDEX, kCount);
  return before;
}

class Mapped : public Dataset {
 public:
  Mapped(DatasetPtr data, Function change, const std::string& line)
      : data_(std::move(data)),
        change_(std::move(change)),
        line_(line),
        ordinal_(next_ordinal(change_.state())) {
    describe_as(*data_);
    fields_.clear();
    const std::vector<HostTensor> first = make({0}, [this](lua_State* L, int result) {
      for (const std::string& name : sorted_keys(L, result)) fields_.push_back({name, {}});
    });
    for (size_t f = 0; f < first.size(); ++f) fields_[f].sample = first[f].type;
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    std::vector<std::byte*> at(to.begin(), to.end());
    for (const Pick& pick : picks) {
      const std::vector<HostTensor> values = make(pick, [](lua_State*, int) {});
      for (size_t f = 0; f < at.size(); ++f) {
        const Type &own = values[f].type, &first = fields_[f].sample;
        if (own != first)
          fail(ORR_INVALID,
               "{}: map: sample {}: field '{}' is {}, of the first sample {}: give every sample "
               "the same dims and dtype, such as by orrery.tensor(values, '{}')",
               line_, pick.sample + 1, fields_[f].name, to_string(own), to_string(first),
               dtype_name(first.dtype));
        if (!at[f]) continue;
        std::memcpy(at[f], values[f].data<std::byte>(), own.bytes());
        at[f] += own.bytes();
      }
    }
  }
  bool main_thread() const override { return true; }

 private:
  // The fields that the function makes of a sample; look(L, result) sees its table before.
  template <class Look>
  std::vector<HostTensor> make(const Pick& pick, Look&& look) const {
    lua_State* L = change_.state();
    const StackTop top(L);
    luaL_checkstack(L, LUA_MINSTACK, "map");
    change_.push();
    push_sample(L, *data_, pick);
    push_random(L, pick.draw, kMapped, ordinal_);
    try {
      protected_call(L, 2, 1);
    } catch (const Error& error) {
      fail(error.code(), "{} (map: sample {})", error.what(), pick.sample + 1);
    }
    const std::string subject = fmt::format("{}: map: sample {}", line_, pick.sample + 1);
    if (!lua_istable(L, top.at + 1))
      fail(ORR_INVALID, "{}: the function returned {}, expected a sample {{field = value}}",
           subject, describe(L, top.at + 1));
    look(L, top.at + 1);
    check_names(L, top.at + 1, subject);
    std::vector<HostTensor> values;
    for (const DataField& field : fields_) values.push_back(value(L, top.at + 1, field, subject));
    return values;
  }

  void check_names(lua_State* L, int sample, const std::string& subject) const {
    if (fields_.empty() || lua_rawlen(L, sample) > 0)
      fail(ORR_INVALID, "{}: the function returned a list, expected a sample {{field = value}}",
           subject);
    std::vector<std::string> known;
    for (const DataField& field : fields_) known.push_back(field.name);
    if (const std::vector<std::string> names = sorted_keys(L, sample); names != known)
      fail(ORR_INVALID, "{}: it has the fields {}, the first sample {}: give every sample the same",
           subject, join(names, ", "), join(known, ", "));
  }

  static HostTensor value(lua_State* L, int sample, const DataField& field,
                          const std::string& subject) {
    lua_getfield(L, sample, field.name.c_str());
    HostTensor made;
    try {
      made = host_at(L, lua_gettop(L));
    } catch (const Error& error) {
      fail(error.code(), "{}: field '{}': {}", subject, field.name, error.what());
    }
    lua_pop(L, 1);
    return made;
  }

  DatasetPtr data_;
  Function change_;
  std::string line_;
  int64_t ordinal_;
};

}  // namespace

void push_sample(lua_State* L, const Dataset& data, const Pick& pick) {
  std::vector<HostTensor> values;
  std::vector<std::byte*> to;
  for (const DataField& field : data.fields())
    to.push_back(values.emplace_back(HostTensor::make(field.sample)).data<std::byte>());
  data.read({&pick, 1}, to);
  lua_newtable(L);
  for (size_t f = 0; f < values.size(); ++f) {
    push(L, Host{std::move(values[f])});
    lua_setfield(L, -2, data.fields()[f].name.c_str());
  }
}

DatasetPtr mapped(DatasetPtr data, Function change, const std::string& line) {
  return std::make_shared<Mapped>(std::move(data), std::move(change), line);
}

}  // namespace orrery::lua
