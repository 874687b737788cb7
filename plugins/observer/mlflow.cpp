// SPDX-License-Identifier: Apache-2.0
//
// --observe mlflow=DIRECTORY: rank 0 writes the run into a file store of MLflow, where its user
// interface and its client read it: numbers of steps, what the script was given as parameters, and
// how the run ended; images, histograms and texts that the script records as artifacts. Runs are in
// the experiment "Default".
//   DIRECTORY/0/meta.yaml                 the experiment
//   DIRECTORY/0/RUN/meta.yaml             the run: when it began and ended, its status
//   DIRECTORY/0/RUN/metrics/eval/loss     lines "milliseconds value step"
//   DIRECTORY/0/RUN/params/lr             the value
//   DIRECTORY/0/RUN/artifacts/images/NAME+step+5+timestamp+MILLISECONDS+ID.png, as its client names
//   DIRECTORY/0/RUN/artifacts/histograms/NAME/5.json, texts/NAME/5.txt
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "buckets.h"
#include "file_name.h"
#include "glue.h"
#include "json_text.h"
#include "png.h"
#include "text_file.h"

namespace {

namespace fs = std::filesystem;
using observer::file_name;

enum Status { kRunning = 1, kFinished = 3, kFailed = 4, kKilled = 5 };

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw observer::FileError("make", path, error.value());
}

std::string uri(const std::string& path) {
  std::string out = "file://";
  for (const unsigned char c : path) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    out += std::isalnum(c) || std::string_view("/-._~").find(char(c)) != std::string_view::npos
               ? std::string(1, char(c))
               : code;
  }
  return out;
}

std::string milliseconds(double time) {
  return std::to_string(static_cast<int64_t>(std::llround(time * 1e3)));
}

std::string random_id() {
  std::random_device bits;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", bits(), bits(), bits(), bits());
  return text;
}

class MlFlow {
 public:
  static constexpr const char* kName = "mlflow";

  void start(const orr_observer_config& config) {
    stop();
    const std::string given(observer::options(config));
    pending_.clear(), left_out_.clear(), run_ = {}, flushed_ = -1e300;
    store_ = given.empty() || config.rank != 0 ? "" : fs::absolute(given).lexically_normal();
    directory_ = config.directory;
  }

  void observe(const orr_event_record& event) {
    if (store_.empty()) return;
    time_ = event.time;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: begin(event); break;
      case ORR_EVENT_FACT:
        if (observer::is_long(event)) parameter(event);
        break;
      case ORR_EVENT_METRIC: add(event, event.text, event.value); break;
      case ORR_EVENT_STEP_END:
        add(event, "seconds", event.seconds);
        if (!(event.time >= flushed_ && event.time - flushed_ < 1)) flush();
        break;
      case ORR_EVENT_IMAGE: image(event); break;
      case ORR_EVENT_HISTOGRAM:
        artifact("histograms", event, ".json",
                 observer::histogram_json(observer::buckets(event.elements, event.count)));
        break;
      case ORR_EVENT_TEXT: artifact("texts", event, ".txt", observer::detail(event)); break;
      case ORR_EVENT_FAILURE: ending_ = event.value == 1 ? kKilled : kFailed; break;
      default: break;
    }
  }

  // The status is that of the job, which is not known before its first run ends, the last one.
  void stop() {
    if (run_.path.empty()) return;
    flush();
    run_.ended = time_;
    ended_.push_back(std::exchange(run_, {}));
    if (!is_job_) return;
    for (const Run& each : std::exchange(ended_, {})) tell(each, ending_);
  }
  int32_t wants(int64_t) const { return 0; }

 private:
  struct Run {
    std::string path, id, name;  // path: "" before it begins
    double begun = 0, ended = 0;
  };

  void begin(const orr_event_record& event) {
    const std::string name(observer::run(event));
    is_job_ = name.empty();
    if (is_job_) ending_ = kFinished, given_.clear(), ended_.clear();
    const std::string experiment = store_ + "/0";
    run_ = {"", random_id(), "", event.time, 0};
    run_.name = fs::path(directory_).filename().string();
    if (run_.name.empty()) run_.name = name.empty() ? "orrery" : name;
    for (const char* inner : {"/metrics", "/params", "/tags", "/artifacts"})
      make_directories(experiment + "/" + run_.id + inner);
    if (!fs::exists(experiment + "/meta.yaml"))
      observer::replace_file(
          experiment + "/meta.yaml",
          "artifact_location: " + observer::quoted(uri(experiment)) +
              "\ncreation_time: " + milliseconds(run_.begun) +
              "\nexperiment_id: '0'\nlast_update_time: " + milliseconds(run_.begun) +
              "\nlifecycle_stage: active\nname: Default\n");
    run_.path = experiment + "/" + run_.id;
    tell(run_, kRunning);
    for (auto& [key, value] : given_)
      observer::replace_file(run_.path + "/params/" + file_name(key), value);
  }

  static void tell(const Run& run, Status status) {
    observer::replace_file(
        run.path + "/meta.yaml",
        "artifact_uri: " + observer::quoted(uri(run.path + "/artifacts")) +
            "\nend_time: " + (status == kRunning ? "null" : milliseconds(run.ended)) +
            "\nentry_point_name: ''\nexperiment_id: '0'\nlifecycle_stage: active\nrun_id: " +
            observer::quoted(run.id) + "\nrun_name: " + observer::quoted(run.name) +
            "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: " +
            milliseconds(run.begun) + "\nstatus: " + std::to_string(status) +
            "\ntags: []\nuser_id: ''\n");
  }

  void parameter(const orr_event_record& event) {
    const std::string_view prefix = "config/", name = event.text;
    if (!name.starts_with(prefix)) return;
    const std::string_view text = observer::detail(event);
    const std::string key(name.substr(prefix.size()));
    given_[key] = text.empty() ? observer::number(event.value) : observer::utf8(text);
    if (!run_.path.empty())
      observer::replace_file(run_.path + "/params/" + file_name(key), given_[key]);
  }

  void add(const orr_event_record& event, std::string_view name, double value) {
    const std::string text = std::isfinite(value) ? observer::number(value)
                             : std::isnan(value)  ? "nan"
                             : value > 0          ? "inf"
                                                  : "-inf";
    pending_[file_name(name)] +=
        milliseconds(event.time) + " " + text + " " + std::to_string(event.step) + "\n";
  }

  void image(const orr_event_record& event) {
    std::string name = file_name(event.text);
    std::replace(name.begin(), name.end(), '/', '~');
    write(run_.path + "/artifacts/images/" + name + "+step+" + std::to_string(event.step) +
              "+timestamp+" + milliseconds(event.time) + "+" + random_id() + ".png",
          observer::png(event));
    observer::replace_file(run_.path + "/tags/mlflow.loggedImages", "True");
  }

  void artifact(const char* kind, const orr_event_record& event, const char* ending,
                std::string_view text) const {
    write(run_.path + "/artifacts/" + kind + "/" + file_name(event.text) + "/" +
              std::to_string(event.step) + ending,
          text);
  }

  static void write(const std::string& path, std::string_view text) {
    make_directories(fs::path(path).parent_path());
    observer::replace_file(path, text);
  }

  void flush() {
    for (auto& [name, lines] : std::exchange(pending_, {})) {
      const std::string path = run_.path + "/metrics/" + name;
      if (!has_room(path)) continue;
      make_directories(fs::path(path).parent_path());
      observer::TextFile file;
      file.append(path);
      file.write(lines);
      file.close();
    }
    flushed_ = time_;
  }

  // In a store of files a number 'a' leaves no room for one called 'a/b'; this is said once.
  bool has_room(const std::string& path) {
    bool taken = fs::is_directory(path);
    for (fs::path at = fs::path(path).parent_path(); at != run_.path; at = at.parent_path())
      taken |= fs::exists(at) && !fs::is_directory(at);
    if (taken && left_out_.insert(path).second) {
      const std::string words = "observer mlflow: " + path +
                                " cannot be made, because a part of its name is that of another "
                                "number; this number is left out";
      orr::host->log(ORR_LOG_WARN, words.c_str());
    }
    return !taken;
  }

  // Of the job, which its further runs share.
  static inline Status ending_ = kFinished;
  static inline std::vector<Run> ended_;  // whose status is to be told
  static inline std::map<std::string, std::string> given_;

  std::string store_, directory_;  // store_: "" if nothing is written
  Run run_;
  bool is_job_ = true;
  std::map<std::string, std::string> pending_;  // lines by the files that they go to
  std::set<std::string> left_out_;
  double time_ = 0, flushed_ = 0;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "mlflow", "0.1.0", "A run in a file store of MLflow",
           observer::Glue<MlFlow>::entry, 1, {{"observer", 1, 1}})
