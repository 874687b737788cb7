// SPDX-License-Identifier: Apache-2.0
//
// What ranks of several hosts tell each other beside their data, each pair on a connection of its
// own: that the world is dead, and, when one has waited too long, who else waits. A connection that
// ends without a farewell is a rank that has died.
#pragma once

#include <poll.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace local {

class Notes {
 public:
  // Takes over the connections, by world rank; this rank has none.
  Notes(int rank, const std::vector<int>& sockets);
  ~Notes();  // says farewell
  Notes(const Notes&) = delete;

  // What listening has brought: the end of the world, in another's words, or a rank that has died.
  struct News {
    int32_t code = 0;  // 0: none
    std::string text;
    int dead = -1;
  };
  // Takes what has come. A rank that `waits` answers who asks. [any thread]
  News listen(bool waits);
  // Tells all that the world is dead. [any thread]
  void tell_end(int32_t code, const std::string& text);
  // Asks all whether they wait, too; silent says of a rank that it has not answered since then.
  void ask_all();
  bool silent(int rank, int64_t since_ns) const;
  // What to poll for news.
  void add_to(std::vector<pollfd>& fds) const;

 private:
  struct Note {
    int32_t kind, code;
    char text[752];
  };
  struct Line {
    int socket = -1;
    std::string incoming, unsent;
    bool left = false, asked = false;
    int64_t answered_ns = 0;
  };
  void tell(Line& line, int32_t kind, int32_t code, const std::string& text);
  void flush(Line& line);
  bool take(Line& line);
  void handle(Line& line, bool waits, News& news);

  mutable std::mutex mutex_;
  std::vector<Line> lines_;
};

}  // namespace local
