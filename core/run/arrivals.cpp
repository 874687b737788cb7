// SPDX-License-Identifier: Apache-2.0
#include "run/arrivals.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/text_file.h"

namespace orrery {
namespace {

constexpr const char* kKinds[] = {"push", "pull", "end"};
constexpr size_t kCheck = 17;  // characters: a space and the hash

}  // namespace

std::string to_string(const Arrival& a) {
  return fmt::format("{} {} {} {}", kKinds[a.kind], a.worker, a.clock, a.version);
}

ArrivalLog::ArrivalLog(const std::string& path, const std::string& heading)
    : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (!file_)
    fail(ORR_FAILED, "cannot write the log of arrivals '{}': {}; name a file that can be made",
         path, std::strerror(errno));
  write("orrery arrivals 1 " + heading);
}

void ArrivalLog::begin(int64_t steps_done) { write(fmt::format("session {}", steps_done)); }
void ArrivalLog::add(const Arrival& arrival) { write(to_string(arrival)); }

void ArrivalLog::write(const std::string& line) {
  digest_.add(line.data(), line.size());
  if (std::fprintf(file_.get(), "%s %s\n", line.c_str(), digest_.text().c_str()) < 0 ||
      std::fflush(file_.get()) != 0)
    fail(ORR_FAILED, "cannot write the log of arrivals '{}': {}; check its disk", path_,
         std::strerror(errno));
}

Replay::Replay(const std::string& path, const std::string& heading, int workers) : path_(path) {
  std::istringstream in(read_text(path, "the log of arrivals '" + path + "'", ORR_FAILED));
  Digest digest;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string text = line.size() > kCheck ? line.substr(0, line.size() - kCheck) : "";
    digest.add(text.data(), text.size());
    if (line != text + " " + digest.text())
      fail(ORR_FAILED, "the log of arrivals '{}' is damaged at line {}; replay a whole one", path,
           number);
    if (number == 1 && text != "orrery arrivals 1 " + heading)
      fail(ORR_FAILED,
           "the log of arrivals '{}' is of another run ({}), this one is '{}': replay with the "
           "same model, "
           "options and ranks",
           path, text, heading);
    if (number > 1) read_line(text, number);
  }
  if (number == 0) fail(ORR_FAILED, "the log of arrivals '{}' is empty; replay a whole one", path);
  for (const Session& s : sessions_)
    if (std::count_if(s.arrivals.begin(), s.arrivals.end(),
                      [](auto& a) { return a.kind == Arrival::end; }) != workers)
      fail(ORR_FAILED,
           "the log of arrivals '{}' is cut short: not all {} workers end; replay a whole one",
           path, workers);
}

void Replay::read_line(const std::string& line, int number) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  auto known = std::find(std::begin(kKinds), std::end(kKinds), kind);
  Arrival a;
  if (kind == "session") {
    words >> sessions_.emplace_back().steps_done;
  } else if (known != std::end(kKinds) && !sessions_.empty()) {
    a.kind = static_cast<Arrival::Kind>(known - std::begin(kKinds));
    words >> a.worker >> a.clock >> a.version;
    sessions_.back().arrivals.push_back(a);
  } else {
    words.setstate(std::ios::failbit);
  }
  std::string more;
  const bool possible = a.worker >= 0 && a.clock >= 0 && a.version >= 0 &&
                        (sessions_.empty() || sessions_.back().steps_done >= 0);
  if (!words || !possible || words >> more)
    fail(ORR_FAILED, "the log of arrivals '{}' is damaged at line {}: '{}'", path_, number, line);
}

void Replay::begin(int64_t steps_done) {
  at_ = 0;
  if (session_ == sessions_.size())
    fail(ORR_FAILED,
         "the log of arrivals '{}' ends before step {}: replay as many steps as were logged", path_,
         steps_done + 1);
  if (int64_t logged = sessions_[session_++].steps_done; logged != steps_done)
    fail(ORR_FAILED,
         "the log of arrivals '{}' goes on after step {}, this run after step {}: replay the same "
         "script",
         path_, logged, steps_done);
}

const Arrival* Replay::next() const {
  const std::vector<Arrival>& all = sessions_[session_ - 1].arrivals;
  return at_ < all.size() ? &all[at_] : nullptr;
}

}  // namespace orrery
