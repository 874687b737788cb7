// SPDX-License-Identifier: Apache-2.0
//
// The last exchanges of this rank, for a job whose ranks did not meet: which one it was in, and
// which came before. Noting one costs about 200 instructions.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace orrery {

class ExchangeLog {
 public:
  static constexpr size_t kept = 256;

  // Notes that an operation begins among the ranks of a communicator, of which this is `rank` of
  // `size`; returns its number. REQUIRES: `among` lives as long as this. [any thread]
  uint64_t begin(const orr_coll& c, const char* among, int rank, int size);
  void end(uint64_t number);  // [any thread]
  // Whether a noted operation has not ended. [any thread]
  bool any_open() const;
  // JSON: the error that ends the rank, then all, the oldest first, one on each line. [any thread]
  std::string text(int rank, int ranks, const std::string& error) const;

 private:
  struct Entry {
    const char* among = "";
    double begin = 0, end = 0;  // unix seconds; end 0: it has not ended
    uint64_t sequence = 0, bytes = 0;
    int32_t op = 0, dtype = 0, root_or_peer = 0;
    char name[56] = "", where[104] = "";
  };
  uint64_t first() const { return next_ < kept ? 0 : next_ - kept; }

  mutable std::mutex mutex_;
  uint64_t next_ = 0;
  std::vector<Entry> entries_{kept};  // exchange n is at n % kept
};

}  // namespace orrery
