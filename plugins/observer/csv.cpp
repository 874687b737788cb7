// SPDX-License-Identifier: Apache-2.0
//
// metrics.csv in the run directory, written by rank 0: a line "step,time,name,value" for each
// metric of a step and for its wall time ("seconds"). One name a line, because a run may tell more
// at some steps than at others. A run that continues an earlier one appends to its file.
#include "glue.h"
#include "json_text.h"
#include "text_file.h"

namespace {

class Csv {
 public:
  static constexpr const char* kName = "csv";

  void start(const orr_observer_config& config) {
    stop();
    if (config.rank != 0 || !*config.directory || observer::is_by_default(config)) return;
    file_.append(std::string(config.directory) + "/metrics.csv");
    if (file_.at() == 0) file_.write("step,time,name,value\n");
  }

  void observe(const orr_event_record& event) {
    if (!file_) return;
    if (event.kind == ORR_EVENT_METRIC) {
      write(event, event.text, event.value);
      file_.flush_in_time(event.time);
    }
    if (event.kind != ORR_EVENT_STEP_END) return;
    write(event, "seconds", event.seconds);
    file_.flush();
  }

  void stop() { file_.close(); }
  int32_t wants(int64_t) const { return 0; }

 private:
  // As RFC 4180 has it: quotes around a name with a comma, a quote or a line's end.
  static std::string cell(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string out = "\"";
    for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  }

  void write(const orr_event_record& event, std::string_view name, double value) {
    const std::string text = std::isfinite(value) ? observer::number(value)
                             : std::isnan(value)  ? "nan"
                             : value > 0          ? "inf"
                                                  : "-inf";
    file_.write(std::to_string(event.step) + "," + observer::number(event.time) + "," + cell(name) +
                "," + text + "\n");
  }

  observer::TextFile file_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "csv", "0.1.0", "metrics.csv in the run directory",
           observer::Glue<Csv>::entry, 1, {{"observer", 1, 1}})
