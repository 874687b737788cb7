// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl in the run directory, written by rank 0, one object per line and flushed:
//   {"step":12,"time":1700000000.25,"loss":2.4312}
// The tag "seconds" holds the wall time of a step. A value that is not finite is written as null. A
// run that continues an earlier one appends to its file.
#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

class Metrics {
 public:
  void start(const orr_observer_config& config) {
    stop();
    if (config.rank != 0 || !*config.directory) return;
    path_ = std::string(config.directory) + "/metrics.jsonl";
    file_.reset(std::fopen(path_.c_str(), "ae"));
    if (!file_) fail("open");
  }

  void observe(const orr_event_record& event) {
    if (!file_) return;
    if (event.kind == ORR_EVENT_METRIC) write(event, event.text, event.value);
    if (event.kind == ORR_EVENT_STEP_END) write(event, "seconds", event.seconds);
  }

  void stop() { file_.reset(); }

 private:
  void write(const orr_event_record& event, std::string_view tag, double value) {
    const std::string line = "{\"step\":" + std::to_string(event.step) +
                             ",\"time\":" + number(event.time) + "," + quoted(tag) + ":" +
                             number(value) + "}\n";
    if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) fail("write");
  }

  [[noreturn]] void fail(const char* what) const {
    throw orr::Error(ORR_FAILED, "cannot " + std::string(what) + " " + path_ + ": " +
                                     std::strerror(errno) +
                                     "; check the run directory and its disk");
  }

  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<FILE, Close> file_;
};

Metrics metrics;

const orr_observer_api table = {sizeof(orr_observer_api), nullptr,
                                [](void*, const orr_observer_config* config) {
                                  return orr::guard([&] { metrics.start(*config); });
                                },
                                [](void*, const orr_event_record* event) {
                                  return orr::guard([&] { metrics.observe(*event); });
                                },
                                [](void*) { metrics.stop(); }};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  if (!orr::attach(boot)) return nullptr;
  out->get = [](void*, const char* id, uint32_t) -> const void* {
    return std::string_view(id) == "observer" ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "metrics", "0.1.0", "metrics.jsonl in the run directory", entry, 1,
           {{"observer", 1, 1}})
