// SPDX-License-Identifier: Apache-2.0
#include "run/observers.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "run/run.h"

namespace orrery {

void Observers::start(int rank, int world_size, const std::string& directory, bool by_default) {
  rank_ = rank, world_size_ = world_size, directory_ = directory, by_default_ = by_default;
  orr_observer_config config{};
  config.size = sizeof config;
  config.rank = rank, config.world_size = world_size;
  config.directory = directory_.c_str();
  config.terminal = isatty(STDERR_FILENO);
  config.by_default = by_default;
  const std::map<std::string, std::string>& options = runtime_options().observe;
  for (const std::string& name : Registry::get().names(ORR_KIND_OBSERVER)) {
    const auto given = options.find(name);
    config.options = given == options.end() ? "" : given->second.c_str();
    if (std::string(config.options) == "off") continue;
    const bool named = given != options.end();
    if (!named && !Registry::get().loads(ORR_KIND_OBSERVER, name)) continue;
    const orr_observer_api& api = Registry::get().observer(name);
    check(api.start(api.self, &config), "observer " + name);
    active_.push_back({&api, name});
  }
}

void Observers::send(orr_event_record event) {
  event.size = sizeof event;
  event.rank = rank_, event.world_size = world_size_;
  if (event.time == 0)
    event.time =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!event.text) event.text = "";
  if (!event.detail) event.detail = "";
  if (!event.run) event.run = run_.c_str();
  std::exception_ptr error;  // the first one, thrown when all observers have got the event
  for (Active& observer : active_) {
    try {
      check(observer.api->observe(observer.api->self, &event), "observer " + observer.name);
    } catch (const Error&) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

void Observers::begin(int64_t planned_steps) {
  planned_steps_ = planned_steps;
  orr_event_record e{};
  e.kind = ORR_EVENT_RUN_BEGIN, e.value = static_cast<double>(planned_steps);
  e.text = directory_.c_str();
  send(e);
  begun_ = true;
  for (auto& [name, value, text] : std::exchange(early_, {})) fact(name, value, text);
}

void Observers::plan(int64_t planned_steps) {
  if (std::exchange(planned_steps_, planned_steps) != planned_steps)
    fact("run/steps", static_cast<double>(planned_steps));
}

Observers::Scope Observers::of(const std::string& run, int64_t planned_steps) {
  if (begun_ && !run.empty() && further_.insert(run).second) {
    const std::string directory = directory_.empty() ? "" : directory_ + "/" + run;
    std::error_code ignored;  // what cannot be made cannot be written to: observers say so
    if (!directory.empty()) std::filesystem::create_directories(directory, ignored);
    fact("further/" + run, 0, directory);
    orr_event_record e{};
    e.kind = ORR_EVENT_FURTHER_BEGIN, e.run = run.c_str(), e.text = directory.c_str();
    e.value = static_cast<double>(planned_steps);
    send(e);
  }
  return Scope(*this, run);
}

void Observers::end(const std::string& run) noexcept {
  if (!further_.erase(run)) return;
  orr_event_record e{};
  e.kind = ORR_EVENT_FURTHER_END, e.run = run.c_str();
  try {
    send(e);
  } catch (const std::exception&) {
    // The files of this run are as they are: a run that goes needs no observer.
  }
}

void Observers::fact(const std::string& name, double value, const std::string& text) {
  if (!begun_) return void(early_.emplace_back(name, value, text));
  orr_event_record e{};
  e.kind = ORR_EVENT_FACT, e.text = name.c_str(), e.value = value, e.detail = text.c_str();
  send(e);
}

int32_t Observers::wants(int64_t step) const {
  int32_t all = 0;
  for (const Active& observer : active_) all |= observer.api->wants(observer.api->self, step);
  return all;
}

void Observers::step_end(int64_t step, double seconds) {
  orr_event_record e{};
  e.kind = ORR_EVENT_STEP_END, e.step = step, e.seconds = seconds;
  send(e);
}

void Observers::metric(int64_t step, const std::string& tag, double value) {
  orr_event_record e{};
  e.kind = ORR_EVENT_METRIC, e.step = step, e.text = tag.c_str(), e.value = value;
  send(e);
}

void Observers::log(const std::string& line) {
  orr_event_record e{};
  e.kind = ORR_EVENT_LOG, e.text = line.c_str(), e.run = "";
  send(e);
}

// Sends the event of an error, then that of the end.
void Observers::failure(const std::string& error, bool stopped) {
  orr_event_record e{};
  e.kind = ORR_EVENT_FAILURE, e.text = error.c_str(), e.value = stopped, e.run = "";
  try {
    send(e);
  } catch (const Error&) {
    stop();
    throw;
  }
  stop();
}

void Observers::stop() {
  const std::vector<Active> all = active_;
  begun_ = false;
  orr_event_record e{};
  e.kind = ORR_EVENT_RUN_END, e.run = "";
  std::exception_ptr error;
  try {
    send(e);
  } catch (const Error&) {
    error = std::current_exception();
  }
  active_.clear(), further_.clear();
  for (const Active& observer : all) observer.api->stop(observer.api->self);
  if (error) std::rethrow_exception(error);
}

}  // namespace orrery
