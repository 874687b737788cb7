// SPDX-License-Identifier: Apache-2.0
//
// The functions of host/1: statuses, logging and threads for plugins.
#include "plugin/host.h"

#include <spdlog/spdlog.h>

#include <new>
#include <string>

#include "plugin/services.h"

struct orr_status {
  int32_t code;
  std::string message;
};

namespace orrery {
namespace {

// Handed out when there is no memory for a status; never freed.
orr_status out_of_memory{ORR_FAILED, "out of memory"};

orr_status* error(int32_t code, const char* message) {
  try {
    return new orr_status{code == ORR_OK ? ORR_FAILED : code,
                          message && *message ? message : "no message"};
  } catch (const std::bad_alloc&) {
    return &out_of_memory;
  }
}

int32_t error_code(const orr_status* status) { return status ? status->code : ORR_OK; }

const char* error_message(const orr_status* status) {
  return status ? status->message.c_str() : "";
}

void error_release(orr_status* status) {
  if (status != &out_of_memory) delete status;
}

void log(int32_t level, const char* message) {
  static constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                                         spdlog::level::warn, spdlog::level::err};
  spdlog::log(levels[level < 0 ? 0 : level > 3 ? 3 : level], "{}", message ? message : "");
}

const orr_host table = {
    sizeof(orr_host), error, error_code, error_message, error_release, log, services::parallel_for,
    services::threads};

}  // namespace

const orr_host& host_table() { return table; }

void check(orr_status* status) { check(status, ""); }

void check(orr_status* status, const std::string& prefix) {
  if (!status) return;
  Error thrown(status->code, prefix.empty() ? status->message : prefix + ": " + status->message);
  error_release(status);
  throw thrown;
}

}  // namespace orrery
