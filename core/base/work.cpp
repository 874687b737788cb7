// SPDX-License-Identifier: Apache-2.0
#include "base/work.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

namespace orrery {
namespace {

std::atomic<const char*> present{nullptr};
std::atomic<int> allowed{0};
std::atomic<int64_t> since{0};
std::atomic<int> waits{0};  // threads that wait for other ranks

std::mutex line_mutex;
std::function<std::string()> find_line;

std::mutex plugin_mutex;
std::string long_in_plugin;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Work::Work(const char* what, int deadlines)
    : outer_(present), outer_deadlines_(allowed), outer_since_(since) {
  allowed = deadlines, since = now(), present = what;
}

Work::~Work() { present = outer_, allowed = outer_deadlines_, since = outer_since_; }

void note_wait(bool begins) { waits += begins ? 1 : -1; }

void note_plugin(const std::string& text) {
  std::lock_guard lock(plugin_mutex);
  long_in_plugin = text;
}

WorkAnswer main_work() {
  if (const char* what = present)
    return {allowed, fmt::format("{}{} for {} s", allowed == Work::of_script ? "in a call of " : "",
                                 what, now() - since)};
  std::lock_guard lock(line_mutex);
  if (!find_line) return {};
  const std::string line = find_line();
  return {Work::of_script, line.empty() ? "in the script" : "in the script at " + line};
}

WorkAnswer current_work() {
  if (waits > 0) return {WorkAnswer::waits, ""};
  WorkAnswer answer = main_work();
  std::lock_guard lock(plugin_mutex);
  if (!long_in_plugin.empty())
    answer.text = long_in_plugin + (answer.text.empty() ? "" : ", " + answer.text);
  return answer;
}

void set_script_line(std::function<std::string()> find) {
  std::lock_guard lock(line_mutex);
  find_line = std::move(find);
}

}  // namespace orrery
