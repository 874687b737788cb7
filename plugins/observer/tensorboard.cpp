// SPDX-License-Identifier: Apache-2.0
//
// An event file of TensorBoard in the run directory, written by rank 0: every metric of a step as a
// scalar, the facts of the run as a text, what the script was given as hyperparameters, and what
// the script records. --observe tensorboard=histograms:100 adds, after every 100th step, a
// histogram of each parameter as rank 0 holds it, and of its gradient.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "buckets.h"
#include "event_file.h"
#include "glue.h"
#include "hparams.h"
#include "json_text.h"
#include "png.h"
#include "text_file.h"
#include "thinning.h"

namespace {

constexpr const char* kPrefix = "events.out.tfevents.";

class TensorBoard {
 public:
  static constexpr const char* kName = "tensorboard";

  void start(const orr_observer_config& config) {
    stop();
    every_ = steps_of(std::string(observer::options(config)));
    facts_.clear(), told_ = 0, begun_ = failed_ = has_hparams_ = false;
    thinning_.begin(observer::is_by_default(config));
    directory_ = config.rank == 0 ? config.directory : "";
    if (config.directory[0] == 0) every_ = 0;
  }

  // All ranks ask, because all take part in making gradients whole.
  int32_t wants(int64_t step) const {
    return every_ > 0 && step % every_ == 0 ? ORR_WANTS_TENSORS : 0;
  }

  void observe(const orr_event_record& event) {
    if (directory_.empty()) return;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: begin(event.time); break;
      case ORR_EVENT_METRIC:
      case ORR_EVENT_STEP_END: thinning_.pass(event, [this](auto& e) { number_of(e); }); break;
      case ORR_EVENT_FACT:
        if (observer::is_long(event)) note(event);
        break;
      case ORR_EVENT_TENSOR:
        if (observer::is_long(event)) histogram(event);
        break;
      case ORR_EVENT_HISTOGRAM:
        first_step(event);
        histogram(event);
        break;
      case ORR_EVENT_TEXT:
        first_step(event);
        put(event_file::event(event.time, event.step,
                              event_file::text(event.text, observer::utf8(event.detail))));
        break;
      case ORR_EVENT_IMAGE: image(event); break;
      case ORR_EVENT_FAILURE: failed_ = event.value != 1; break;
      case ORR_EVENT_RUN_END:
        if (has_hparams_) put(event_file::event(event.time, 0, hparams::end(failed_, event.time)));
        break;
      default: break;
    }
  }

  void stop() {
    if (file_) thinning_.end([this](auto& e) { number_of(e); });
    file_.close();
  }

 private:
  void number_of(const orr_event_record& event) {
    if (event.kind == ORR_EVENT_STEP_END) return end_step(event);
    scalar(event, event.text, event.value);
    file_.flush_in_time(event.time);
  }

  static int64_t steps_of(const std::string& options) {
    if (options.empty()) return 0;
    const std::string key = "histograms:";
    int64_t every = 0;
    const char* end = options.data() + options.size();
    if (options.rfind(key, 0) != 0 ||
        std::from_chars(options.data() + key.size(), end, every).ptr != end || every < 1)
      throw orr::Error(ORR_INVALID, "--observe tensorboard=" + options +
                                        ": write histograms:STEPS, as histograms:100");
    return every;
  }

  // One more than the newest file's, if that is not older: TensorBoard reads the files of a
  // directory in the order of their names.
  int64_t stamp(double time) const {
    auto all = static_cast<int64_t>(time);
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, ignored)) {
      const std::string name = entry.path().filename().string();
      int64_t other = 0;
      if (name.rfind(kPrefix, 0) != 0) continue;
      std::from_chars(name.data() + std::strlen(kPrefix), name.data() + name.size(), other);
      all = std::max(all, other + 1);
    }
    return all;
  }

  // events.out.tfevents.<seconds>.<host>.<process>
  void begin(double time) {
    char host[256] = "host", text[32];
    gethostname(host, sizeof host - 1);
    std::snprintf(text, sizeof text, "%010lld", static_cast<long long>(stamp(time)));
    file_.open(directory_ + "/" + kPrefix + text + "." + host + "." + std::to_string(getpid()));
    put(event_file::real(1, time) + event_file::bytes(3, "brain.Event:2"));
    file_.flush();
  }

  void put(const std::string& payload) { file_.write(event_file::record(payload)); }

  // The start of a session (status 1): what older files have from its first step on is replaced.
  void first_step(const orr_event_record& e) {
    if (std::exchange(begun_, true)) return;
    put(event_file::event(e.time, e.step, event_file::bytes(7, event_file::integer(1, 1))));
  }

  void scalar(const orr_event_record& e, std::string_view tag, double value) {
    first_step(e);
    put(event_file::event(e.time, e.step, event_file::scalar(tag, value)));
  }

  void end_step(const orr_event_record& e) {
    scalar(e, "seconds", e.seconds);
    if (told_ != facts_.size()) tell(e);
    file_.flush();
  }

  void note(const orr_event_record& e) {
    const std::string_view text = observer::detail(e);
    facts_[e.text] = text.empty() ? observer::number(e.value) : std::string(text);
  }

  void tell(const orr_event_record& e) {
    std::string table = "name | value\n--- | ---\n";
    for (auto& [name, value] : facts_) table += name + " | " + value + "\n";
    put(event_file::event(e.time, e.step, event_file::text("configuration", table)));
    told_ = facts_.size();
    tell_hparams(e);
  }

  // What the script was given, if that is anything.
  void tell_hparams(const orr_event_record& e) {
    const std::string_view prefix = "config/";
    std::map<std::string, std::string> given;
    for (auto& [name, value] : facts_)
      if (name.starts_with(prefix)) given[name.substr(prefix.size())] = observer::utf8(value);
    if (given.empty()) return;
    has_hparams_ = true;
    put(event_file::event(e.time, 0, hparams::begin(given, e.time - e.seconds, directory_)));
  }

  void histogram(const orr_event_record& e) {
    const std::vector<double> rows = observer::buckets(e.elements, e.count);
    if (!rows.empty()) put(event_file::event(e.time, e.step, event_file::histogram(e.text, rows)));
  }

  void image(const orr_event_record& e) {
    first_step(e);
    put(event_file::event(
        e.time, e.step,
        event_file::image(e.text, e.width, e.height, e.channels, observer::png(e))));
  }

  std::string directory_;
  int64_t every_ = 0;
  bool begun_ = false, failed_ = false, has_hparams_ = false;
  size_t told_ = 0;
  std::map<std::string, std::string> facts_;
  observer::TextFile file_;
  observer::Thinning thinning_;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "tensorboard", "0.1.0", "An event file in the run directory",
           observer::Glue<TensorBoard>::entry, 1, {{"observer", 1, 1}})
