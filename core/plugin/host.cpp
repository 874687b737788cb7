// SPDX-License-Identifier: Apache-2.0
//
// The functions of host/1: statuses, logging and threads for plugins.
#include "plugin/host.h"

#include <spdlog/spdlog.h>

#include <cctype>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_set>

#include "base/machine.h"
#include "plugin/services.h"

struct orr_status {
  int32_t code;
  std::string message;
};

namespace orrery {
namespace {

// Handed out when there is no memory for a status; never freed.
orr_status no_memory{ORR_FAILED, "out of memory"};
// Handed out in place of a pointer that is no status; never freed.
orr_status not_ours{
    ORR_FAILED, "what came back as a status was not made by the host's `error`, or is released"};

// The statuses that there are. A plugin may return one that it has released, or any pointer.
class Statuses {
 public:
  static Statuses& get() {
    static auto* all = new Statuses;  // plugins may end after static objects
    return *all;
  }
  void add(const orr_status* status) {
    const std::lock_guard lock(mutex_);
    made_.insert(status);
  }
  bool remove(const orr_status* status) {
    const std::lock_guard lock(mutex_);
    return made_.erase(status) > 0;
  }
  const orr_status& find(const orr_status* status) {
    const std::lock_guard lock(mutex_);
    return status == &no_memory || made_.count(status) ? *status : not_ours;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const orr_status*> made_;
};

orr_status* error(int32_t code, const char* message) {
  try {
    std::unique_ptr<orr_status> made(
        new orr_status{code == ORR_OK ? ORR_FAILED : code, message ? message : "no message"});
    Statuses::get().add(made.get());
    return made.release();
  } catch (const std::bad_alloc&) {
    return &no_memory;
  }
}

int32_t error_code(const orr_status* status) {
  return status ? Statuses::get().find(status).code : ORR_OK;
}

const char* error_message(const orr_status* status) {
  return status ? Statuses::get().find(status).message.c_str() : "";
}

void error_release(orr_status* status) {
  if (status && Statuses::get().remove(status)) delete status;
}

void log(int32_t level, const char* message) {
  static constexpr spdlog::level::level_enum levels[] = {spdlog::level::debug, spdlog::level::info,
                                                         spdlog::level::warn, spdlog::level::err};
  std::string line = message ? message : "";
  for (char& c : line)  // a line end would begin a line that nobody has logged
    if (std::iscntrl(static_cast<unsigned char>(c))) c = ' ';
  spdlog::log(levels[level < 0 ? 0 : level > 3 ? 3 : level], "{}", line);
}

// What the standard library says of memory or threads that cannot be had, in words; more may
// follow.
std::string readable(const std::string& message) {
  static const std::pair<std::string, std::string (*)()> known[] = {
      {"std::bad_alloc", out_of_memory}, {"Resource temporarily unavailable", out_of_threads}};
  for (const auto& [theirs, ours] : known)
    if (message.starts_with(theirs)) return ours() + message.substr(theirs.size());
  return message;
}

const orr_host table = {
    sizeof(orr_host), error, error_code, error_message, error_release, log, services::parallel_for,
    services::threads};

}  // namespace

const orr_host& host_table() { return table; }

void check(orr_status* status) { check(status, ""); }

void check(orr_status* status, const std::string& prefix) {
  if (!status) return;
  std::string message = readable(error_message(status));
  if (message.empty()) message = "no message";  // of a plugin that gives none; the judge sees that
  Error thrown(error_code(status), prefix.empty() ? message : prefix + ": " + message);
  error_release(status);
  throw thrown;
}

}  // namespace orrery
