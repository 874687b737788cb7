// SPDX-License-Identifier: Apache-2.0
//
// An observer that does in `start` what no plugin may: ORRERY_TEST_FAULT says what. Elsewhere it
// writes down its events.
#include <orrery/observer.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <orrery/sdk/plugin.hpp>
#include <stdexcept>
#include <string>

namespace {

void in_a_thread_of_the_pool() {
  orr::parallel_for(2, [](int64_t) {
    if (gettid() == getpid()) pause();
    std::exit(0);
  });
}

// Calls itself until its stack is full.
int deeper(volatile int* above) {
  volatile int here[256] = {*above};
  return here[0] < 0 ? 0 : deeper(here) + here[0];
}

int fill_the_stack() {
  volatile int first = 1;
  return deeper(&first);
}

orr_status* start(void*, const orr_observer_config*) {
  const char* fault = std::getenv("ORRERY_TEST_FAULT");
  const std::string what = fault ? fault : "";
  if (what == "exit") std::exit(0);
  if (what == "exit in a thread") in_a_thread_of_the_pool();
  if (what == "abort") std::abort();
  if (what == "segv") *static_cast<volatile int*>(nullptr) = 1;
  if (what == "recursion") std::printf("%d\n", fill_the_stack());
  if (what == "recursion in a thread")
    orr::parallel_for(2, [](int64_t) {
      if (gettid() == getpid()) pause();
      std::printf("%d\n", fill_the_stack());
    });
  if (what == "long") usleep(1500000);
  if (what == "long in threads") orr::parallel_for(2, [](int64_t) { usleep(1500000); });
  if (what == "throw") throw std::out_of_range("vector::at");
  if (what == "throw 7") throw 7;
  if (what == "throw 7 guarded") return orr::guard([] { throw 7; });
  return nullptr;
}

orr_status* observe(void*, const orr_event_record* event) {
  if (std::getenv("ORRERY_TEST_EVENTS")) std::printf("event %d %s\n", event->kind, event->text);
  if (std::getenv("ORRERY_TEST_EVENTS_FAIL")) return orr::host->error(ORR_FAILED, "no more");
  return nullptr;
}

void stop(void*) {
  if (std::getenv("ORRERY_TEST_EVENTS")) std::printf("stopped\n"), std::fflush(stdout);
}

const orr_observer_api table = {sizeof(orr_observer_api), nullptr, start, observe, stop, nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t) -> const void* {
    return std::string_view(id) == "observer" ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "faulty", "1.0.0", "Faults at command", entry, 1,
           {{"observer", 1, 1}})
