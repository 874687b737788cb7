// SPDX-License-Identifier: Apache-2.0
#include "arrivals.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "error.h"

namespace server {
namespace {

constexpr const char* kKinds[] = {"push", "pull", "end"};
constexpr size_t kCheck = 17;  // characters: a space and the hash

std::string log_of(const std::string& path) { return "the log of arrivals '" + path + "'"; }

// Reads a regular file. Other kinds are refused: a pipe might never end.
std::string whole_file(const std::string& path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0)
    fail(ORR_FAILED, log_of(path), ": cannot be read: ", std::strerror(errno));
  if (!S_ISREG(facts.st_mode))
    fail(ORR_FAILED, log_of(path), ": is no regular file; name one that was logged to");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) fail(ORR_FAILED, log_of(path), ": cannot be read: ", std::strerror(errno));
  return text.str();
}

}  // namespace

std::string to_string(const Arrival& a) {
  return text(kKinds[a.kind], " ", a.worker, " ", a.clock, " ", a.version);
}

std::string Check::text() const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits_digest(state_.get())));
  return digits;
}

ArrivalLog::ArrivalLog(const std::string& path, const std::string& heading)
    : path_(path), file_(std::fopen(path.c_str(), "we")) {
  if (!file_)
    fail(ORR_FAILED, "cannot write ", log_of(path), ": ", std::strerror(errno),
         "; name a file that can be made");
  write("orrery arrivals 1 " + heading);
}

void ArrivalLog::begin(int64_t steps_done) { write(text("session ", steps_done)); }
void ArrivalLog::add(const Arrival& arrival) { write(to_string(arrival)); }

void ArrivalLog::write(const std::string& line) {
  check_.add(line);
  if (std::fprintf(file_.get(), "%s %s\n", line.c_str(), check_.text().c_str()) < 0 ||
      std::fflush(file_.get()) != 0)
    fail(ORR_FAILED, "cannot write ", log_of(path_), ": ", std::strerror(errno),
         "; check its disk");
}

Replay::Replay(const std::string& path, const std::string& heading, int workers) : path_(path) {
  std::istringstream in(whole_file(path));
  Check check;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string said = line.size() > kCheck ? line.substr(0, line.size() - kCheck) : "";
    check.add(said);
    if (line != said + " " + check.text())
      fail(ORR_FAILED, log_of(path), " is damaged at line ", number, "; replay a whole one");
    if (number == 1 && said != "orrery arrivals 1 " + heading)
      fail(ORR_FAILED, log_of(path), " is of another run (", said, "), this one is '", heading,
           "': replay with the same model, options and ranks");
    if (number > 1) read_line(said, number);
  }
  if (number == 0) fail(ORR_FAILED, log_of(path), " is empty; replay a whole one");
  for (const Session& s : sessions_)
    if (std::count_if(s.arrivals.begin(), s.arrivals.end(),
                      [](auto& a) { return a.kind == Arrival::end; }) != workers)
      fail(ORR_FAILED, log_of(path), " is cut short: not all ", workers,
           " workers end; replay a whole one");
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
    fail(ORR_FAILED, log_of(path_), " is damaged at line ", number, ": '", line, "'");
}

void Replay::begin(int64_t steps_done) {
  at_ = 0;
  if (session_ == sessions_.size())
    fail(ORR_FAILED, log_of(path_), " ends before step ", steps_done + 1,
         ": replay as many steps as were logged");
  if (int64_t logged = sessions_[session_++].steps_done; logged != steps_done)
    fail(ORR_FAILED, log_of(path_), " goes on after step ", logged, ", this run after step ",
         steps_done, ": replay the same script");
}

const Arrival* Replay::next() const {
  const std::vector<Arrival>& all = sessions_[session_ - 1].arrivals;
  return at_ < all.size() ? &all[at_] : nullptr;
}

}  // namespace server
