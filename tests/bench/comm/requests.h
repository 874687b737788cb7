// SPDX-License-Identifier: Apache-2.0
//
// The protocol of peer/contestants.py for programs that measure communication: every rank reads the
// line "OPERATION BYTES CALLS" from the named pipe requests.RANK and waits there without using a
// CPU; rank 0 answers with microseconds per call in the pipe `replies`.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

struct Request {
  std::string op;
  long bytes = 0;
  int calls = 0;
};

class Requests {
 public:
  Requests(const std::string& pipes, int rank) {
    in_ = std::fopen((pipes + "/requests." + std::to_string(rank)).c_str(), "r");
    if (rank == 0) out_ = std::fopen((pipes + "/replies").c_str(), "w");
    if (!in_ || (rank == 0 && !out_)) throw std::runtime_error("no pipes in " + pipes);
  }
  ~Requests() {
    std::fclose(in_);
    if (out_) std::fclose(out_);
  }
  Requests(const Requests&) = delete;

  bool next(Request& r) {
    char op[32];
    if (std::fscanf(in_, "%31s %ld %d", op, &r.bytes, &r.calls) != 3) return false;
    r.op = op;
    return true;
  }
  void answer(double microseconds) {
    if (!out_) return;
    std::fprintf(out_, "%.3f\n", microseconds);
    std::fflush(out_);
  }

 private:
  std::FILE *in_ = nullptr, *out_ = nullptr;
};
