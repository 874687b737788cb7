// SPDX-License-Identifier: Apache-2.0
//
// Rank 0 shows how far a run has come: on a terminal in one line that is redrawn, otherwise as a
// line of the log every few seconds.
//   step 120/300 [00:12<00:18, 9.87 step/s, 12.6k tok/s] loss 2.4312 (mean 2.4519) norm 1.02
#include <cmath>
#include <cstdio>
#include <string>

#include "glue.h"

namespace {

constexpr double redraw_seconds = 0.1, log_seconds = 5, owner_seconds = 1;
constexpr double mean_weight = 0.05;  // the weight of the newest loss in the running mean

std::string clock_text(double seconds) {
  const long s = std::isfinite(seconds) && seconds > 0 ? long(seconds + 0.5) : 0;
  char text[32];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%02ld:%02ld", s / 60, s % 60);
  return text;
}

class Progress {
 public:
  static constexpr const char* kName = "progress";

  void start(const orr_observer_config& config) {
    *this = Progress();
    shown_ = config.rank == 0;
    terminal_ = config.terminal != 0;
  }

  void observe(const orr_event_record& event) {
    if (!shown_) return;
    switch (event.kind) {
      case ORR_EVENT_RUN_BEGIN: begin(event); break;
      case ORR_EVENT_METRIC:
        if (std::string_view(event.text) == "loss") take_loss(event.value);
        if (std::string_view(event.text) == "skipped_steps") skipped_ = int64_t(event.value);
        if (std::string_view(event.text) == "data_seconds") waited_ += event.value;
        take_rates(event.text, event.value);
        break;
      case ORR_EVENT_STEP_END: end_step(event); break;
      case ORR_EVENT_FACT:  // of a run that has begun before that was known
        if (std::string_view(event.text) == "run/steps") total_ = int64_t(event.value);
        break;
      case ORR_EVENT_LOG: erase(); break;  // the log then writes its own line in place of this one
      case ORR_EVENT_FAILURE:
      case ORR_EVENT_RUN_END: finish(); break;
      default: break;
    }
  }

  int32_t wants(int64_t) const { return 0; }
  void stop() { finish(); }

  void finish() {
    if (!shown_ || steps_ == 0 || finished_) return;
    finished_ = true;
    show();
    if (terminal_) std::fputc('\n', stderr);
  }

 private:
  void begin(const orr_event_record& event) {
    begun_ = now_ = last_shown_ = event.time;
    total_ = int64_t(event.value);
  }

  void take_rates(std::string_view tag, double value) {
    if (tag == "samples_per_second" && unit_ != std::string_view("tok/s"))
      rate_ = value, unit_ = "samples/s";
    if (tag == "tokens_per_second") rate_ = value, unit_ = "tok/s";
    if (tag == "grad_norm") norm_ = value;
    if (tag == "learning_rate") lr_ = value;
    if (tag == "mfu") mfu_ = value;
    if (tag == "resident_bytes") memory_ = value;
  }

  void take_loss(double loss) {
    loss_ = loss;
    if (!std::isfinite(loss)) return;  // the loss of a skipped step is not shown
    mean_ = has_loss_ ? mean_ + mean_weight * (loss - mean_) : loss;
    has_loss_ = true;
  }

  void end_step(const orr_event_record& event) {
    ++steps_;
    step_ = event.step;
    now_ = event.time;
    run_ = observer::run(event);
    if (terminal_ && !has_line()) return;
    if (now_ - last_shown_ < (terminal_ ? redraw_seconds : log_seconds)) return;
    last_shown_ = now_;
    show();
  }

  // Runs whose steps alternate share the terminal's line: one keeps it while it takes steps.
  bool has_line() {
    if (owner_ != this && now_ - owner_time_ < owner_seconds) return false;
    owner_ = this, owner_time_ = now_;
    return true;
  }

  std::string line() const {
    const double elapsed = now_ - begun_;
    const double rate = elapsed > 0 ? double(steps_) / elapsed : 0;
    std::string text = (run_.empty() ? "" : run_ + " ") + "step " + std::to_string(step_);
    if (total_ > 0) text += "/" + std::to_string(total_);
    text += " [" + clock_text(elapsed);
    if (total_ > 0 && rate > 0) text += "<" + clock_text(double(total_ - step_) / rate);
    char part[96];
    if (rate >= 1 || rate == 0)
      std::snprintf(part, sizeof part, ", %.2f step/s", rate);
    else
      std::snprintf(part, sizeof part, ", %.2f s/step", 1 / rate);
    text += part;
    if (rate_ > 0) text += ", " + short_number(rate_) + " " + unit_;
    text += "]";
    if (has_loss_) {
      std::snprintf(part, sizeof part, " loss %.4f (mean %.4f)", loss_, mean_);
      text += part;
    }
    if (skipped_ > 0) text += " skipped " + std::to_string(skipped_);
    append(text, " norm %.3g", norm_);
    append(text, " lr %.3g", lr_);
    if (mfu_ > 0) append(text, " mfu %.0f%%", 100 * mfu_);
    if (memory_ > 0) text += " memory " + short_number(memory_) + "B";
    if (const int share = elapsed > 0 ? int(100 * waited_ / elapsed) : 0; share > 0)
      text += " waiting for data " + std::to_string(share) + "%";
    return text;
  }

  static void append(std::string& text, const char* format, double value) {
    if (std::isnan(value)) return;  // the run has not told it
    char part[64];
    std::snprintf(part, sizeof part, format, value);
    text += part;
  }

  // "12.6k", "1.20M"
  static std::string short_number(double value) {
    static constexpr const char* prefixes[] = {"", "k", "M", "G", "T"};
    size_t i = 0;
    for (; value >= 999.5 && i < 4; ++i) value /= 1000;
    char text[32];
    std::snprintf(text, sizeof text,
                  value < 10    ? "%.2f%s"
                  : value < 100 ? "%.1f%s"
                                : "%.0f%s",
                  value, prefixes[i]);
    return text;
  }

  void show() const {
    if (terminal_)
      std::fprintf(stderr, "\r\033[K%s", line().c_str());
    else
      orr::host->log(ORR_LOG_INFO, line().c_str());
    std::fflush(stderr);
  }

  void erase() const {
    if (!terminal_ || finished_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  }

  bool shown_ = false, terminal_ = false, has_loss_ = false, finished_ = false;
  int64_t total_ = 0, step_ = 0, steps_ = 0, skipped_ = 0;
  double begun_ = 0, now_ = 0, last_shown_ = 0, loss_ = 0, mean_ = 0;
  double waited_ = 0;                                               // seconds, for rows of batches
  double rate_ = 0, mfu_ = 0, memory_ = 0, norm_ = NAN, lr_ = NAN;  // of the last step
  const char* unit_ = "";
  std::string run_;  // "": the first
  static inline const Progress* owner_ = nullptr;
  static inline double owner_time_ = 0;
};

}  // namespace

ORR_PLUGIN(ORR_KIND_OBSERVER, "progress", "0.1.0", "Step, rate, time left and loss on rank 0",
           observer::Glue<Progress>::entry, 1, {{"observer", 1, 1}})
