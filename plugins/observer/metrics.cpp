// SPDX-License-Identifier: Apache-2.0
//
// metrics.jsonl in the run directory, written by rank 0, an object on a line for each step with all
// its numbers, flushed at its end:
//   {"step":12,"time":1700000000.25,"loss":2.4312,"grad_norm":0.5,"seconds":0.125}
// What the script records later at the step, an evaluation too, is another line, which is written
// once anything else is told.
// What the script records beside numbers is in records.jsonl (record_file.h).
// The tag "seconds" holds the wall time of a step. A value that is not finite is written as null. A
// run that continues an earlier one appends to its file. Every rank writes facts.RANK.jsonl, what a
// run is, what its plan says and how it ended: {"name":"plan/arena_bytes","value":1048576}
#include "glue.h"
#include "json_text.h"
#include "metric_line.h"
#include "record_file.h"
#include "text_file.h"
#include "thinning.h"

namespace {

using observer::number;

class Metrics {
 public:
  static constexpr const char* kName = "metrics";

  void start(const orr_observer_config& config) {
    stop();
    if (!*config.directory) return;
    const std::string directory = config.directory;
    if (config.rank == 0) file_.append(directory + "/metrics.jsonl");
    records_.begin(directory);
    thinning_.begin(observer::is_by_default(config));
    facts_path_ = directory + "/facts." + std::to_string(config.rank) + ".jsonl";
    status_ = "finished", error_.clear();
  }

  void observe(const orr_event_record& event) {
    if (!facts_path_.empty() && event.kind == ORR_EVENT_FACT && observer::is_long(event))
      return note(event);
    if (!facts_path_.empty() && event.kind == ORR_EVENT_FAILURE) fail(event);
    if (!facts_path_.empty() && event.kind == ORR_EVENT_RUN_END) end(event);
    if (!file_) return;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: planned(event); break;
      case ORR_EVENT_METRIC:
      case ORR_EVENT_STEP_END: thinning_.pass(event, [this](auto& e) { number_of(e); }); break;
      case ORR_EVENT_LOG: end_line(); break;
      case ORR_EVENT_TEXT: end_line(), records_.text(event); break;
      case ORR_EVENT_IMAGE: end_line(), records_.image(event); break;
      case ORR_EVENT_HISTOGRAM: end_line(), records_.histogram(event); break;
      default: break;
    }
  }

  void stop() {
    if (file_) thinning_.end([this](auto& e) { number_of(e); });
    if (file_) end_line();
    file_.close(), records_.close(), facts_.close(), facts_path_.clear();
  }
  int32_t wants(int64_t) const { return 0; }

 private:
  void number_of(const orr_event_record& event) {
    const bool last = event.kind == ORR_EVENT_STEP_END;
    const std::string_view name = last ? "seconds" : event.text;
    if (!line_.takes(event.step, name)) write_line();
    line_.add(event.step, event.time, name, last ? event.seconds : event.value);
    if (last) end_line();
  }

  void write_line() {
    file_.write(line_.take());
    file_.flush_in_time(line_.time());
  }

  void end_line() {
    if (line_.empty()) return;
    file_.write(line_.take());
    file_.flush();
  }

  void fact(const std::string& line) {
    if (!facts_) facts_.open(facts_path_);
    facts_.write(line + "\n");
    facts_.flush();
  }

  void note(const orr_event_record& event) {
    const std::string_view text = observer::detail(event);
    fact("{\"name\":" + observer::quoted(event.text) +
         ",\"value\":" + (text.empty() ? number(event.value) : observer::quoted(text)) + "}");
  }

  void planned(const orr_event_record& event) {
    fact("{\"name\":\"run/begin\",\"value\":" + number(event.time) + "}");
    fact("{\"name\":\"run/steps\",\"value\":" + number(event.value) + "}");
  }

  void fail(const orr_event_record& event) {
    const std::string_view error = event.text;
    status_ = event.value == 1 ? "stopped" : "failed";
    error_ = error.substr(0, error.find('\n'));
  }

  void end(const orr_event_record& event) {
    fact("{\"name\":\"run/end\",\"value\":" + number(event.time) + "}");
    if (!error_.empty())
      fact("{\"name\":\"run/error\",\"value\":" + observer::quoted(error_) + "}");
    fact("{\"name\":\"run/status\",\"value\":" + observer::quoted(status_) + "}");
  }

  std::string facts_path_;      // "": this run writes none
  std::string status_, error_;  // as the run will end, and the first line of its error
  observer::TextFile file_, facts_;
  observer::MetricLine line_;
  observer::RecordFile records_;
  observer::Thinning thinning_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "metrics", "0.1.0", "metrics.jsonl in the run directory",
           observer::Glue<Metrics>::entry, 1, {{"observer", 1, 1}})
