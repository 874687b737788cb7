// SPDX-License-Identifier: Apache-2.0
//
// The order in which a server handled what reached it, as text:
//
//   orrery arrivals 1 <what ran> <check>
//   session <steps done before> <check>
//   pull <worker> <clock> <version> <check>
//   push <worker> <clock> <version> <check>
//   end <worker> <clock> <version> <check>     once per worker, at the end of each session
//
// clock: the worker's steps in this session before. version: updates of the session before. check:
// xxh3 of all lines up to there, so that no line can be changed, lost or added.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace server {

struct Arrival {
  enum Kind : int64_t { push, pull, end } kind = push;
  int worker = 0;
  int64_t clock = 0, version = 0;
};
std::string to_string(const Arrival& arrival);

// Of all lines so far.
class Check {
 public:
  Check() : state_(XXH3_createState(), XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const std::string& line) { XXH3_64bits_update(state_.get(), line.data(), line.size()); }
  std::string text() const;

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

// [one thread at a time]
class ArrivalLog {
 public:
  // Begins the file, and says what runs. Throws orr::Error, as `add` does, if it cannot be written.
  ArrivalLog(const std::string& path, const std::string& heading);
  void begin(int64_t steps_done);
  void add(const Arrival& arrival);

 private:
  void write(const std::string& line);
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<FILE, Close> file_;
  Check check_;
};

// A log to be followed. [one thread at a time]
class Replay {
 public:
  // Throws orr::Error if the file is damaged, ends within a session, or is of another run.
  Replay(const std::string& path, const std::string& heading, int workers);
  // Throws orr::Error if the log has no further session, or it begins after other steps.
  void begin(int64_t steps_done);
  // What comes next; null at the end of the session.
  const Arrival* next() const;
  void pass() { ++at_; }
  const std::string& path() const { return path_; }

 private:
  struct Session {
    int64_t steps_done = 0;
    std::vector<Arrival> arrivals;
  };
  void read_line(const std::string& line, int number);
  std::string path_;
  std::vector<Session> sessions_;
  size_t session_ = 0, at_ = 0;  // session: from 1 while one is open
};

}  // namespace server
