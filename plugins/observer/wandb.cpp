// SPDX-License-Identifier: Apache-2.0
//
// --observe wandb=PROJECT: rank 0 writes an offline run of Weights & Biases into the run directory,
// wandb/offline-run-DATE-ID/run-ID.wandb, which `wandb sync` sends. It has the numbers of steps,
// what the script was given, what it records, and how the run ended. The records are protobuf
// messages, of which the few fields that are needed are written by hand:
//   Record: num 1, history 2, summary 3, config 5, files 6, run 17, exit 18, header 21
//   HistoryRecord: item 1 = { nested_key 2, value_json 16 }, step 2 = { num 1 }
//   FilesRecord: files 1 = { path 1, type 3 }, below files/ beside the file; type 3 is an image
//   SummaryRecord, ConfigRecord: update 1 = { key 1 or nested_key 2, value_json 16 }
//   RunRecord: run_id 1, project 3, config 4, display_name 8, host 13,
//              start_time 17 = { seconds 1 }
//   RunExitRecord: exit_code 1, runtime 2
//   HeaderRecord: version_info 1 = { producer 1, min_consumer 2 }
#include <sodium.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <list>
#include <map>
#include <random>
#include <string>

#include "buckets.h"
#include "event_file.h"
#include "file_name.h"
#include "glue.h"
#include "json_text.h"
#include "png.h"
#include "wandb_file.h"

namespace {

namespace fs = std::filesystem;
using event_file::bytes;
using event_file::integer;

// JSON as Python's json reads and writes it, where numbers need not be finite.
std::string json(double value) {
  if (std::isfinite(value)) return observer::number(value);
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

std::string item(int key_field, std::string_view key, std::string_view value_json) {
  return bytes(1, bytes(key_field, observer::utf8(key)) + bytes(16, value_json));
}

std::string sha256(std::string_view data) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(data.data()), data.size());
  char text[2 * sizeof hash + 1];
  return sodium_bin2hex(text, sizeof text, hash, sizeof hash);
}

// Eight letters and digits, as W&B names runs.
std::string random_id() {
  const std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device bits;
  std::string id;
  for (int i = 0; i < 8; ++i) id += letters[bits() % letters.size()];
  return id;
}

class Wandb {
 public:
  static constexpr const char* kName = "wandb";

  void start(const orr_observer_config& config) {
    stop();
    project_ = observer::options(config);
    if (project_.find_first_of("/\\#?%:") != project_.npos)
      throw orr::Error(ORR_INVALID, "--observe wandb=" + project_ +
                                        ": a project's name has none of / \\ # ? % :");
    if (!project_.empty() && !*config.directory)
      throw orr::Error(ORR_INVALID, "--observe wandb=" + project_ +
                                        ": this run has no directory to write to; give --dir");
    directory_ = config.rank == 0 && !project_.empty() ? config.directory : "";
    step_ = -1, row_.clear(), last_.clear();
  }

  void observe(const orr_event_record& event) {
    if (directory_.empty()) return;
    time_ = event.time;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: begin(event); break;
      case ORR_EVENT_FACT:
        if (observer::is_long(event)) given(event);
        break;
      case ORR_EVENT_METRIC: add(event.step, event.text, json(event.value)); break;
      case ORR_EVENT_STEP_END: add(event.step, "seconds", json(event.seconds)); break;
      case ORR_EVENT_TEXT:
        add(event.step, event.text, observer::quoted(observer::detail(event)));
        break;
      case ORR_EVENT_HISTOGRAM: histogram(event); break;
      case ORR_EVENT_IMAGE: image(event); break;
      case ORR_EVENT_FAILURE: exit_code_ = 1; break;
      default: break;
    }
  }

  // The exit code is that of the job, which is not known before its first run ends, the last one.
  void stop() {
    if (!file_) return;
    end_row();
    summary();
    file_.flush();
    Ended& own = ended_.emplace_back();
    own.file = std::move(file_);
    own.records = records_, own.runtime = static_cast<int64_t>(time_ - begun_);
    if (!is_job_) return;
    for (Ended& each : std::exchange(ended_, {})) {
      const std::string exit = integer(1, exit_code_) + integer(2, each.runtime);
      each.file.record(integer(1, each.records + 1) + bytes(18, exit));
      each.file.close();
    }
  }
  int32_t wants(int64_t) const { return 0; }

 private:
  void begin(const orr_event_record& event) {
    const std::string name(observer::run(event));
    is_job_ = name.empty();
    if (is_job_) exit_code_ = 0, given_.clear(), ended_.clear();
    begun_ = event.time, records_ = 0;
    const std::string id = random_id();
    const auto seconds = static_cast<time_t>(begun_);
    std::tm local{};
    localtime_r(&seconds, &local);
    char date[32];
    std::strftime(date, sizeof date, "%Y%m%d_%H%M%S", &local);
    place_ = directory_ + "/wandb/offline-run-" + date + "-" + id;
    make_directories(place_);
    file_.open(place_ + "/run-" + id + ".wandb");
    put(21, bytes(1, bytes(1, "orrery") + bytes(2, "0.70.0")));
    std::string config;
    for (auto& [key, value] : given_) config += item(1, key, value);
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    const std::string shown = fs::path(directory_).lexically_normal().filename().string();
    put(17, bytes(1, id) + bytes(3, project_) + bytes(4, config) + bytes(8, observer::utf8(shown)) +
                bytes(13, host) + bytes(17, integer(1, seconds)));
    file_.flush();
  }

  static void make_directories(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw observer::FileError("make", path, error.value());
  }

  void put(int field, const std::string& message) {
    file_.record(integer(1, ++records_) + bytes(field, message));
  }

  // What the script was given, as a number or true or false where it is one.
  void given(const orr_event_record& event) {
    const std::string_view prefix = "config/", name = event.text, text = observer::detail(event);
    if (!name.starts_with(prefix)) return;
    const bool is_word = text == "true" || text == "false";
    double value = event.value;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool is_number = text.empty() || (error == std::errc() && stop == end);
    const std::string as_json = is_word     ? std::string(text)
                                : is_number ? json(value)
                                            : observer::quoted(text);
    const std::string key(name.substr(prefix.size()));
    given_[key] = as_json;
    if (file_) put(5, item(1, key, as_json));
  }

  // A row of the history has the values of one step, as JSON, each name once.
  void add(int64_t step, const std::string& name, const std::string& value) {
    if (step != step_ || row_.contains(name)) end_row();
    step_ = step, row_time_ = time_, row_[name] = value, last_[name] = value;
  }

  void histogram(const orr_event_record& event) {
    const observer::HistogramLists lists =
        observer::histogram_lists(observer::buckets(event.elements, event.count));
    if (lists.counts != "[]")
      add(event.step, event.text,
          R"({"_type": "histogram", "values": )" + lists.counts + R"(, "bins": )" + lists.edges +
              "}");
  }

  // The file is named as W&B's own, by its place in the run and its hash.
  void image(const orr_event_record& event) {
    const std::string png = observer::png(event), hash = sha256(png);
    const std::string path = "media/images/" + observer::file_name(event.text) + "_" +
                             std::to_string(event.step) + "_" + hash.substr(0, 20) + ".png";
    const std::string file = place_ + "/files/" + path;
    make_directories(fs::path(file).parent_path());
    observer::replace_file(file, png);
    put(6, bytes(1, bytes(1, path) + integer(3, 3)));
    add(event.step, event.text,
        R"({"_type": "image-file", "format": "png", "path": )" + observer::quoted(path) +
            R"(, "sha256": ")" + hash + R"(", "size": )" + std::to_string(png.size()) +
            R"(, "width": )" + std::to_string(event.width) + R"(, "height": )" +
            std::to_string(event.height) + "}");
  }

  void end_row() {
    if (row_.empty()) return;
    std::string items;
    for (auto& [name, value] : row_) items += item(2, name, value);
    items += item(2, "_step", std::to_string(step_)) + item(2, "_timestamp", json(row_time_)) +
             item(2, "_runtime", json(row_time_ - begun_));
    put(2, items + bytes(2, integer(1, step_)));
    row_.clear();
    if (time_ - flushed_ < 0 || time_ - flushed_ >= 1) file_.flush(), flushed_ = time_;
  }

  // The last value of each name.
  void summary() {
    std::string items;
    for (auto& [name, value] : last_) items += item(2, name, value);
    if (step_ >= 0) items += item(2, "_step", std::to_string(step_));
    put(3, items + item(2, "_runtime", json(time_ - begun_)));
  }

  struct Ended {
    observer::WandbFile file;
    int64_t records = 0, runtime = 0;
  };

  // Of the job, which its further runs share.
  static inline int exit_code_ = 0;
  static inline std::list<Ended> ended_;                    // but for their exit codes
  static inline std::map<std::string, std::string> given_;  // names, and values as JSON

  std::string project_, directory_, place_;  // directory_: "" if nothing is written
  std::map<std::string, std::string> row_, last_;
  int64_t step_ = -1, records_ = 0;
  double begun_ = 0, time_ = 0, row_time_ = 0, flushed_ = 0;
  bool is_job_ = true;
  observer::WandbFile file_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "wandb", "0.1.0", "An offline run of Weights & Biases",
           observer::Glue<Wandb>::entry, 1, {{"observer", 1, 1}})
