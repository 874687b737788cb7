// SPDX-License-Identifier: Apache-2.0
//
// Bad boot plugins. A good one, of one rank that keeps its values in its memory, would pass.
#include <orrery/boot.h>
#include <unistd.h>

#include <map>
#include <orrery/sdk/plugin.hpp>
#include <string>

#include "fault.h"
#pragma pop_macro("ORR_PLUGIN")

namespace {

std::map<std::string, std::string> values;

orr_status* started(void*, orr_boot_world* out) {
  static int asked = 0;
  if (fault("gives_no_reason")) return nullptr;
  out->started = 1, out->world_size = out->local_size = 1;
  if (fault("is_another_rank_each_time")) out->world_size = 9, out->rank = asked++;
  if (fault("counts_ranks_from_1")) out->rank = 1;
  if (fault("writes_beyond_its_world")) reinterpret_cast<volatile char*>(out)[sizeof *out] = 0;
  return nullptr;
}

orr_status* put(void*, const char* key, const void* value, uint64_t bytes) {
  values[key] = std::string(static_cast<const char*>(value), bytes);
  return nullptr;
}

orr_status* get(void*, int32_t, const char* key, void* value, uint64_t, uint64_t* bytes,
                int64_t deadline_ns) {
  return orr::guard([&] {
    const auto found = values.find(key);
    while (found == values.end() && fault("waits_for_ever")) pause();
    if (found == values.end() && fault("gives_what_nobody_put")) return;
    if (found == values.end()) {
      usleep(static_cast<useconds_t>(deadline_ns / 1000));
      throw orr::Error(ORR_DEADLINE, std::string("nobody has put ") + key);
    }
    *bytes = found->second.size() - (fault("cuts_values") ? 1 : 0);
    found->second.copy(static_cast<char*>(value), *bytes);
  });
}

const orr_boot_api table = {sizeof(orr_boot_api), nullptr, started,
                            fault("misses_a_slot") ? nullptr : put, get};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "boot" && version == 1 ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(0, FAULT_NAME, "0.1.0", "A bad boot plugin", entry, 1, {{"boot", 1, 1}})
