// SPDX-License-Identifier: Apache-2.0
//
// The log of arrivals: a text file with the order in which a server handled its messages. A later
// run can replay it and gets the same bits. Its lines:
//
//   orrery arrivals 1 <what ran> <check>
//   session <steps done before> <check>
//   pull <worker> <clock> <version> <check>
//   push <worker> <clock> <version> <check>
//   end <worker> <clock> <version> <check>     once per worker, at the end of each session
//
// clock: how many steps the worker had done in this session. version: how many updates the server
// had made in this session. check: the xxh3 hash of all lines up to this one, so that a line that
// was changed, lost or added is found.
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

// The hash of all lines so far.
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
  // Begins the file with a line that describes the run. Throws orr::Error, as `add` does, if the
  // file cannot be written.
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

// A log that this run repeats. [one thread at a time]
class Replay {
 public:
  // Reads the file. Throws orr::Error if it is damaged, ends within a session, or if its heading is
  // another one.
  Replay(const std::string& path, const std::string& heading, int workers);
  // Goes to the next session. Throws orr::Error if there is none, or if the log's session begins
  // after another number of steps.
  void begin(int64_t steps_done);
  // Returns the message that must be handled next; null at the end of the session.
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
  size_t session_ = 0;  // counted from 1; 0: none was begun
  size_t at_ = 0;       // the next arrival of the session
};

}  // namespace server
