// SPDX-License-Identifier: Apache-2.0
//
// What every rank did in some steps, as a trace that ui.perfetto.dev and chrome://tracing open:
// trace.RANK.json of each rank, and when all ranks of one directory have written theirs, trace.json
// with all of them. --observe trace=10:12 notes steps 10 to 12; without it 3 to 5. What an earlier
// start of the job has written is kept as trace-1.json, trace-2.json and so on.
//
// JSON object format of the Trace Event Format: times in microseconds; a process for each rank; a
// thread for each lane; flow events bind the two sides of an exchange; counters have the bytes of
// the arena. The file is whole JSON after every step.
#include <algorithm>
#include <cinttypes>
#include <fstream>
#include <map>
#include <sstream>

#include "glue.h"
#include "json_text.h"
#include "text_file.h"

namespace {

using observer::number, observer::quoted;

constexpr const char* kEnd = "\n]}\n";

std::string hex(uint64_t id) {
  char text[20];
  std::snprintf(text, sizeof text, "\"%" PRIx64 "\"", id);
  return text;
}

class Trace {
 public:
  static constexpr const char* kName = "trace";

  void start(const orr_observer_config& config) {
    stop();
    *this = Trace();
    choose_steps(std::string(observer::options(config)));
    rank_ = config.rank, ranks_ = config.world_size, directory_ = config.directory;
    if (observer::is_by_default(config)) directory_.clear();
    if (directory_.empty()) return;
    keep_earlier();
  }

  int32_t wants(int64_t step) const {
    return !directory_.empty() && step >= first_ && step <= last_ ? ORR_WANTS_SPANS : 0;
  }

  void observe(const orr_event_record& event) {
    if (directory_.empty() || !observer::is_long(event)) return;
    if (event.kind == ORR_EVENT_SPAN) span(event);
    if (event.kind == ORR_EVENT_LEVEL) level(event);
    if (event.kind != ORR_EVENT_STEP_END || text_.empty()) return;
    write_out();
    if (event.step == last_) join();
  }

  void stop() {
    if (file_ && !joined_) join();  // a run that ended before the last step to note
    file_.close();
  }

 private:
  static int64_t whole(const std::string& text, const std::string& all) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1)
      throw orr::Error(ORR_INVALID, "--observe trace=" + all +
                                        ": write FIRST:LAST, two steps counted from 1, as 10:12");
    return value;
  }

  void choose_steps(const std::string& options) {
    if (options.empty()) return;
    const size_t colon = options.find(':');
    first_ = whole(options.substr(0, colon), options);
    last_ = colon == std::string::npos ? first_ : whole(options.substr(colon + 1), options);
    if (last_ < first_ || last_ - first_ >= 1000)
      throw orr::Error(ORR_INVALID, "--observe trace=" + options +
                                        ": the last step comes after the first, at most 999 later");
  }

  bool is_there(const std::string& name) const {
    return access((directory_ + "/" + name).c_str(), F_OK) == 0;
  }

  // Gives trace`rest` the first name trace-N`rest` that is free.
  void keep(const std::string& rest) const {
    if (!is_there("trace" + rest)) return;
    int number = 1;
    while (is_there("trace-" + std::to_string(number) + rest)) ++number;
    const std::string kept = directory_ + "/trace-" + std::to_string(number) + rest;
    std::rename((directory_ + "/trace" + rest).c_str(), kept.c_str());
  }

  // The part of a rank is not needed where it is in a file of all ranks.
  void keep_earlier() const {
    if (is_there("trace.json") || is_there("trace-1.json"))
      std::remove(path(rank_).c_str());
    else
      keep("." + std::to_string(rank_) + ".json");
    if (rank_ == 0) keep(".json");
  }

  std::string path(int rank) const {
    return directory_ + "/trace." + std::to_string(rank) + ".json";
  }

  static int thread(int lane) { return lane >= ORR_LANE_COMM ? 10 + lane : -lane; }

  void add(const std::string& event) { text_ += (text_.empty() ? "" : ",\n") + event; }

  // `ph` and what all events have.
  std::string head(const char* ph, std::string_view name, double time, int lane) const {
    char at[40];
    std::snprintf(at, sizeof at, "%.3f", time * 1e6);
    return "{\"ph\":\"" + std::string(ph) + "\",\"name\":" + quoted(name) + ",\"ts\":" + at +
           ",\"pid\":" + std::to_string(rank_) + ",\"tid\":" + std::to_string(thread(lane));
  }

  void name_lane(int lane) {
    const std::string name = lane == ORR_LANE_COMPUTE ? "compute"
                             : lane == ORR_LANE_COPY  ? "copy"
                             : lane == ORR_LANE_DATA  ? "data"
                             : lane == ORR_LANE_COMM
                                 ? "communication"
                                 : "communication " + std::to_string(lane - ORR_LANE_COMM);
    if (lanes_.empty())
      add(head("M", "process_name", 0, 0) + ",\"args\":{\"name\":\"rank " + std::to_string(rank_) +
          "\"}}");
    if (lanes_.emplace(lane, true).second)
      add(head("M", "thread_name", 0, lane) + ",\"args\":{\"name\":" + quoted(name) + "}}");
  }

  void span(const orr_event_record& e) {
    static constexpr const char* phases[] = {"before", "forward", "backward", "weights", "update"};
    name_lane(e.lane);
    char lasts[40];
    std::snprintf(lasts, sizeof lasts, "%.3f", e.seconds * 1e6);
    const size_t phase = e.phase >= 0 && e.phase < 5 ? size_t(e.phase) : 0;
    std::string args = "\"step\":" + std::to_string(e.step);
    if (e.lane != ORR_LANE_DATA) args += ",\"stage\":" + std::to_string(e.stage);
    if (e.microbatch >= 0) args += ",\"microbatch\":" + std::to_string(e.microbatch);
    if (e.flops > 0) args += ",\"flops\":" + number(e.flops);
    if (e.bytes > 0) args += ",\"bytes\":" + std::to_string(e.bytes);
    if (!observer::detail(e).empty()) args += ",\"where\":" + quoted(observer::detail(e));
    add(head("X", e.text, e.time, e.lane) + ",\"cat\":\"" + phases[phase] + "\",\"dur\":" + lasts +
        ",\"args\":{" + args + "}}");
    // The points lie inside of the span, so that viewers bind them to it.
    const auto flow = [&](const char* ph, double at, uint64_t id, const char* more) {
      add(head(ph, "exchange", at, e.lane) + ",\"cat\":\"exchange\",\"id\":" + hex(id) + more +
          "}");
    };
    if (e.arrow_out) flow("s", e.time, e.arrow_out, "");
    if (e.arrow_in)
      flow("f", std::max(e.time, e.time + e.seconds - 5e-7), e.arrow_in, ",\"bp\":\"e\"");
  }

  void level(const orr_event_record& e) {
    add(head("C", "arena: " + std::string(e.text), e.time, 0) +
        ",\"args\":{\"bytes\":" + number(e.value) + "}}");
  }

  // Writes what has been noted over the end of the file, and the end behind it.
  void write_out() {
    if (!file_) {
      file_.open(path(rank_));
      file_.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    } else {
      file_.seek(end_);
      file_.write(",\n");
    }
    file_.write(text_);
    text_.clear();
    file_.flush();
    end_ = file_.at();
    file_.write(kEnd);
    file_.flush();
  }

  // What the files of all ranks have by now, empty if one is not there.
  std::string events_of_all() const {
    std::string all;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::ifstream in(path(rank));
      if (!in) return "";
      std::ostringstream text;
      text << in.rdbuf();
      const std::string one = text.str();
      const size_t begin = one.find("[\n"), end = one.rfind(kEnd);
      if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
      all += (rank ? ",\n" : "") + one.substr(begin + 2, end - begin - 2);
    }
    return all;
  }

  // Writes the file under the name `by` first, so that it is there whole or not at all.
  static void replace(const std::string& path, const std::string& by, const std::string& text) {
    try {
      observer::TextFile file;
      file.open(by);
      file.write(text);
      file.close();
      if (std::rename(by.c_str(), path.c_str()) != 0)
        throw observer::FileError("write", path, errno);
    } catch (const observer::FileError&) {
      std::remove(by.c_str());
      throw;
    }
  }

  // Joins the files of all ranks, if they are all there: the rank that ends last finds them so. One
  // that read before it may write after it, and sees then that there is more.
  void join() {
    joined_ = true;
    const std::string to = directory_ + "/trace.json",
                      by = to + "." + std::to_string(rank_) + ".part";
    std::string written;
    for (std::string all = events_of_all(); !all.empty() && all != written; all = events_of_all()) {
      replace(to, by, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + all + kEnd);
      written = all;
    }
  }

  int64_t first_ = 3, last_ = 5;
  int rank_ = 0, ranks_ = 1;
  long end_ = 0;
  bool joined_ = false;
  std::string directory_, text_;  // text_: events of this step
  std::map<int, bool> lanes_;
  observer::TextFile file_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "trace", "0.1.0",
           "trace.json of some steps in the run directory, for Perfetto",
           observer::Glue<Trace>::entry, 1, {{"observer", 1, 1}})
