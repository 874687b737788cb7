// SPDX-License-Identifier: Apache-2.0
//
// An observer plugin: events in every order that a run has, borrowed for the call, and runs that
// must not notice it.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "conformance/growth.h"
#include "conformance/guarded.h"
#include "conformance/loaded.h"
#include "conformance/scripts.h"
#include "plugin/host.h"

namespace orrery::judge {
namespace {

// Feeds an observer with structs and texts that are gone after each call.
class Feed {
 public:
  Feed(const orr_observer_api& api, Fit fit) : api_(api), fit_(fit) {}

  void start(int rank, const std::string& directory) {
    const Fleeting text(directory);
    Guarded<orr_observer_config> config({0, rank, 2, text.get(), 0, "", 0}, fit_);
    check(api_.start(api_.self, config.get()));
  }
  void send(int kind, int64_t step, double value, const std::string& words) {
    const Fleeting text(words);
    orr_event_record record{};
    record.kind = kind, record.world_size = 2, record.step = step, record.value = value;
    record.seconds = 0.5, record.time = time_ += 0.5, record.text = text.get();
    record.detail = text.get();
    Guarded<orr_event_record> event(record, fit_);
    check(api_.observe(api_.self, event.get()));
  }
  void stop() { api_.stop(api_.self); }

  void run(int steps, const std::string& directory) {
    start(0, directory);
    send(ORR_EVENT_RUN_BEGIN, 0, steps, directory);
    for (int step = 1; step <= steps; ++step) {
      send(ORR_EVENT_METRIC, step, 1.0 / step, "loss");
      send(ORR_EVENT_METRIC, step, step == 2 ? std::nan("") : 0.5, "grad_norm");
      if (step % 3 == 0) send(ORR_EVENT_LOG, 0, 0, "a line of the script");
      if (step % 4 == 0) send(ORR_EVENT_TEXT, step, 0, "a text of the script");
      send(ORR_EVENT_STEP_END, step, 0, "");
    }
    send(ORR_EVENT_RUN_END, 0, 0, "");
    stop();
  }

 private:
  // A text whose page goes away with it.
  class Fleeting {
   public:
    explicit Fleeting(const std::string& text)
        : bytes_(text.c_str(), static_cast<uint32_t>(text.size() + 1), Fit::kExact) {}
    const char* get() const { return static_cast<const char*>(bytes_.data()); }

   private:
    GuardedBytes bytes_;
  };

  const orr_observer_api& api_;
  Fit fit_;
  double time_ = 1.7e9;
};

void feed(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const ScratchDirectory directory;
  Feed(plugin.table<orr_observer_api>(ORR_KIND_OBSERVER), fit).run(10, directory.path());
}
void exact_structs(const Subject& subject) { feed(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { feed(subject, Fit::kLonger); }

const orr_observer_api& observer_of(const Subject& subject) {
  return registry_with(subject).observer(subject.name());
}

// Two runs of one process, one without a directory; a run without steps; one that fails.
void orders(const Subject& subject) {
  const ScratchDirectory directory;
  Feed feed(observer_of(subject), Fit::kExact);
  feed.run(5, directory.path());
  feed.run(5, "");
  feed.run(0, "");
  feed.start(1, "");
  feed.send(ORR_EVENT_RUN_BEGIN, 0, 0, "");
  feed.send(ORR_EVENT_FAILURE, 0, 0, "gpt.lua:20: something went wrong: {} %s %n");
  feed.send(ORR_EVENT_RUN_END, 0, 0, "");
  feed.stop();
}

void unknown_events(const Subject& subject) {
  Feed feed(observer_of(subject), Fit::kExact);
  feed.start(0, "");
  feed.send(ORR_EVENT_RUN_BEGIN, 0, 3, "");
  for (int kind : {0, 7, 8, 9, 10, 11, 12, 99}) feed.send(kind, 1, 0, "an event of a newer host");
  feed.send(ORR_EVENT_RUN_END, 0, 0, "");
  feed.stop();
}

// A directory that is not there: success, for an observer that does not write, or an error in
// words.
void errors(const Subject& subject) {
  const orr_observer_api& api = observer_of(subject);
  const orr_observer_config config{sizeof config, 0, 2, "/proc/no such directory", 0, "", 0};
  orr_status* status = api.start(api.self, &config);
  if (!status) {
    api.stop(api.self);
    return;
  }
  const std::string words = host_table().error_message(status);
  host_table().error_release(status);
  if (words.find("/proc/no such directory") == std::string::npos)
    throw Fault("types.h: orr_status, \"The outcome of a call\"",
                "an error that names the directory", "'" + words + "'");
}

void leaks(const Subject& subject) {
  const orr_observer_api& api = observer_of(subject);
  Feed feed(api, Fit::kExact);
  feed.start(0, "");
  feed.send(ORR_EVENT_RUN_BEGIN, 0, 0, "");
  int64_t step = 0;
  const std::string grown = growth([&] {
    feed.send(ORR_EVENT_METRIC, ++step, 0.5, "loss");
    feed.send(ORR_EVENT_STEP_END, step, 0, "");
  });
  feed.stop();
  if (!grown.empty())
    throw Fault("observer.h: observe", "steps that keep nothing", "each keeps " + grown);
}

void changes_nothing(const Subject& subject) {
  const ScriptRun alone = run_script(subject, false, "", 1),
                  observed = run_script(subject, true, "", 1);
  const char* contract = "observer.h: \"read-only events of a run\"";
  if (observed.code != 0)
    throw Fault(contract, "a run that succeeds as without it", observed.output);
  if (observed.bits() != alone.bits())
    throw Fault(contract, "the losses and parameters of a run without it: " + alone.bits(),
                observed.bits());
}

}  // namespace

std::vector<Test> observer_tests() {
  return {{"observer.exact_structs", 10, exact_structs},
          {"observer.longer_structs", 10, longer_structs},
          {"observer.orders", 10, orders},
          {"observer.unknown_events", 10, unknown_events},
          {"observer.errors", 10, errors},
          {"observer.leaks", 10, leaks},
          {"observer.changes_nothing", 60, changes_nothing}};
}

}  // namespace orrery::judge
