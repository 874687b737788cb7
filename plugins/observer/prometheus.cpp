// SPDX-License-Identifier: Apache-2.0
//
// --observe prometheus=FILE.prom: the last value of each number in Prometheus' text format, written
// by rank 0 at most once a second, for the node exporter's textfile collector. The file is replaced
// as a whole, so that no reader sees a part of it. A run with a name has a file of its own beside
// it, FILE-NAME.prom.
//   orrery_metric{run="runs/gpt",name="loss"} 2.4312
//   orrery_step{run="runs/gpt"} 12
//   orrery_running{run="runs/gpt"} 1
#include <cmath>
#include <map>
#include <string>

#include "glue.h"
#include "json_text.h"
#include "text_file.h"

namespace {

constexpr std::string_view kEnding = ".prom";

class Prometheus {
 public:
  static constexpr const char* kName = "prometheus";

  void start(const orr_observer_config& config) {
    stop();
    values_.clear(), step_ = 0, written_ = -1e300;
    const std::string_view given = observer::options(config);
    if (given.empty()) return;
    if (!given.ends_with(kEnding) || given == kEnding)
      throw orr::Error(ORR_INVALID, "--observe prometheus=" + std::string(given) +
                                        ": write the path of a file that ends in .prom");
    if (config.rank == 0) path_ = given, directory_ = config.directory;
  }

  void observe(const orr_event_record& event) {
    if (path_.empty()) return;
    time_ = event.time;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: begin(event); break;
      case ORR_EVENT_METRIC: values_[event.text] = event.value; break;
      case ORR_EVENT_STEP_END:
        values_["seconds"] = event.seconds, step_ = event.step;
        if (!(event.time >= written_ && event.time - written_ < 1)) write(true);
        break;
      default: break;
    }
  }

  void stop() {
    if (!run_.empty()) write(false);
    path_.clear(), run_.clear();
  }
  int32_t wants(int64_t) const { return 0; }

 private:
  void begin(const orr_event_record& event) {
    const std::string name(observer::run(event));
    if (!name.empty()) path_.insert(path_.size() - kEnding.size(), "-" + name);
    run_ = "run=\"" + escaped(directory_.empty() ? name : directory_) + "\"";
    write(true);
  }

  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : observer::utf8(text))
      out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
    return out;
  }

  static std::string number(double value) {
    if (std::isfinite(value)) return observer::number(value);
    return std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  }

  static std::string family(const std::string& name, const std::string& help) {
    return "# HELP " + name + " " + help + "\n# TYPE " + name + " gauge\n";
  }

  void write(bool running) {
    std::string text = family("orrery_metric", "The last value of a number that a run tells.");
    for (auto& [name, value] : values_)
      text += "orrery_metric{" + run_ + ",name=\"" + escaped(name) + "\"} " + number(value) + "\n";
    const auto one = [&](const std::string& name, const std::string& help, double value) {
      text += family(name, help) + name + "{" + run_ + "} " + number(value) + "\n";
    };
    one("orrery_step", "The last step that has ended.", static_cast<double>(step_));
    one("orrery_running", "1 until the run ends.", running);
    one("orrery_told_seconds", "When this was written, in unix seconds.", time_);
    observer::replace_file(path_, text);
    written_ = time_;
  }

  std::string path_, directory_;  // path_: "" if nothing is written
  std::string run_;               // its label; "" before it begins
  std::map<std::string, double> values_;
  int64_t step_ = 0;
  double time_ = 0, written_ = 0;  // of the last event, of what the file has
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "prometheus", "0.1.0", "Numbers in a file for Prometheus",
           observer::Glue<Prometheus>::entry, 1, {{"observer", 1, 1}})
