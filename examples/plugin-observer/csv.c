/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes what a run measures as steps.csv into its directory: a line "step,what,value" for every
 * metric, and for the time of each step. */
#include <orrery/host.h>
#include <orrery/observer.h>
#include <orrery/plugin.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const orr_host* host;
static FILE* file; /* NULL: this rank, or this run, writes none */

static orr_status* failed(const char* name) {
  char words[600];
  snprintf(words, sizeof words,
           "steps: cannot write %.400s (%s); is there room, and may you write there?", name,
           strerror(errno));
  return host->error(ORR_FAILED, words);
}

static orr_status* start(void* self, const orr_observer_config* config) {
  char name[512];
  (void)self;
  if (config->rank != 0 || config->directory[0] == 0) return NULL;
  snprintf(name, sizeof name, "%s/steps.csv", config->directory);
  file = fopen(name, "we");
  if (!file || fputs("step,what,value\n", file) < 0) return failed(name);
  return NULL;
}

static orr_status* row(int64_t step, const char* what, double value) {
  if (file && fprintf(file, "%lld,%s,%.9g\n", (long long)step, what, value) < 0)
    return failed("steps.csv");
  return NULL;
}

static orr_status* observe(void* self, const orr_event_record* event) {
  (void)self;
  switch (event->kind) {
    case ORR_EVENT_METRIC: return row(event->step, event->text, event->value);
    case ORR_EVENT_STEP_END: return row(event->step, "seconds", event->seconds);
    default: return NULL; /* newer hosts have more */
  }
}

static void stop(void* self) {
  (void)self;
  if (file) fclose(file);
  file = NULL;
}

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

ORR_PLUGIN(ORR_KIND_OBSERVER, "steps", "1.0.0", "Writes metrics and step times as CSV", entry, 1,
           {{"observer", 1, 1}})
