/* @name@: counts the steps of a run and the time they took. See orrery/observer.h for the
 * events. */
#include <orrery/host.h>
#include <orrery/observer.h>
#include <orrery/plugin.h>

#include <stdio.h>
#include <string.h>

static const orr_host* host;
static long long steps;
static double seconds;
static int speaks;

static orr_status* start(void* self, const orr_observer_config* config) {
  (void)self;
  steps = 0;
  seconds = 0;
  speaks = config->rank == 0;
  return NULL;
}

static orr_status* observe(void* self, const orr_event_record* event) {
  char line[96];
  (void)self;
  switch (event->kind) {
    case ORR_EVENT_STEP_END:
      ++steps;
      seconds += event->seconds;
      break;
    case ORR_EVENT_RUN_END:
      if (!speaks || steps == 0) break;
      snprintf(line, sizeof line, "@name@: %lld steps in %.3f s", steps, seconds);
      host->log(ORR_LOG_INFO, line);
      break;
    default: break; /* newer hosts have more */
  }
  return NULL;
}

static void stop(void* self) { (void)self; }

static const orr_observer_api table = {sizeof(orr_observer_api), NULL, start, observe, stop, NULL};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "observer") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_OBSERVER, "@name@", "0.1.0", "Counts steps and their time", entry, 1,
           {{"observer", 1, 1}})
