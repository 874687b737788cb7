// SPDX-License-Identifier: Apache-2.0
#include "run/save_place.h"

#include <cerrno>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "run/agree.h"
#include "run/saving.h"
#include "store/file.h"

namespace orrery {

// Does what the rank does that completes checkpoints: rank 0, or with `alone` this one. Throws its
// error on all ranks.
static void as_writer(bool alone, const char* call, const std::string& line,
                      const std::function<void()>& work) {
  alone |= world_info().size == 1;
  const std::string error = error_of([&] {
    if (alone || world_info().rank == 0) work();
  });
  if (!alone) fail_together(error, call, line);
  if (!error.empty()) throw Error(ORR_FAILED, error);
}

// Whether an error of a file ends with what the system says of a full disk, quota or limit.
static bool is_want_of_room(const std::string& why) {
  for (int code : {ENOSPC, EDQUOT, EFBIG})
    if (why.find(std::strerror(code)) != std::string::npos) return true;
  return false;
}

void begin_series(const std::string& directory, bool alone, const std::string& line) {
  as_writer(alone, "run:checkpoints", line, [&] { open_series(directory); });
}

void check_stop_place(const std::string& directory, const std::string& line) {
  as_writer(false, "run:step", line, [&] {
    try {
      const CheckpointWriter writer(directory);
    } catch (const Error& e) {
      const std::string why = fmt::format("--dir: a stop could not save: {}", e.what());
      if (!is_want_of_room(why)) fail(ORR_FAILED, "{}", why);
      tell_once(line + ": " + why);  // there may be room again by then
    }
  });
}

}  // namespace orrery
