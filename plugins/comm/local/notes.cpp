// SPDX-License-Identifier: Apache-2.0
#include "notes.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <orrery/sdk/plugin.hpp>

#include "../shared/operation.h"

namespace local {
namespace {

enum Kind : int32_t { the_end = 1, question = 2, answer = 3, farewell = 4 };

}  // namespace

Notes::Notes(int rank, const std::vector<int>& sockets) : lines_(sockets.size()) {
  for (size_t r = 0; r < sockets.size(); ++r)
    if (static_cast<int>(r) != rank) lines_[r].socket = sockets[r];
}

Notes::~Notes() {
  for (Line& line : lines_) {
    if (line.socket < 0) continue;
    tell(line, farewell, 0, "");
    close(line.socket);
  }
}

void Notes::tell(Line& line, int32_t kind, int32_t code, const std::string& text) {
  Note note{kind, code, {}};
  orr::copy_text(note.text, text);
  line.unsent.append(reinterpret_cast<const char*>(&note), sizeof note);
  flush(line);
}

void Notes::flush(Line& line) {
  if (line.unsent.empty()) return;
  const ssize_t n =
      send(line.socket, line.unsent.data(), line.unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) line.unsent.erase(0, static_cast<size_t>(n));
}

void Notes::tell_end(int32_t code, const std::string& text) {
  std::lock_guard lock(mutex_);
  for (Line& line : lines_)
    if (line.socket >= 0) tell(line, the_end, code, text);
}

void Notes::ask_all() {
  std::lock_guard lock(mutex_);
  for (Line& line : lines_)
    if (line.socket >= 0) tell(line, question, 0, "");
}

bool Notes::silent(int rank, int64_t since_ns) const {
  std::lock_guard lock(mutex_);
  const Line& line = lines_[rank];
  return line.socket >= 0 && !line.left && line.answered_ns < since_ns;
}

// Reads what there is; false when there will be no more.
bool Notes::take(Line& line) {
  char buffer[4096];
  for (;;) {
    const ssize_t n = recv(line.socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    line.incoming.append(buffer, static_cast<size_t>(n));
  }
}

void Notes::handle(Line& line, bool waits, News& news) {
  while (line.incoming.size() >= sizeof(Note)) {
    Note note;
    std::memcpy(&note, line.incoming.data(), sizeof note);
    line.incoming.erase(0, sizeof note);
    if (note.kind == question) line.asked = true;
    if (note.kind == answer) line.answered_ns = shared::now_ns();
    if (note.kind == farewell) line.left = true;
    if (note.kind != the_end || news.code != 0) continue;
    news.code = note.code;
    news.text.assign(note.text, strnlen(note.text, sizeof note.text));
  }
  if (!line.asked || !waits) return;
  line.asked = false;
  tell(line, answer, 0, "");
}

Notes::News Notes::listen(bool waits) {
  std::lock_guard lock(mutex_);
  News news;
  for (size_t r = 0; r < lines_.size(); ++r) {
    Line& line = lines_[r];
    if (line.socket < 0) continue;
    flush(line);
    const bool goes_on = take(line);
    handle(line, waits, news);
    if (goes_on) continue;
    if (!line.left && news.dead < 0) news.dead = static_cast<int>(r);
    line.left = true;
    close(line.socket);
    line.socket = -1;
  }
  return news;
}

void Notes::add_to(std::vector<pollfd>& fds) const {
  std::lock_guard lock(mutex_);
  for (const Line& line : lines_)
    if (line.socket >= 0) fds.push_back({line.socket, POLLIN, 0});
}

}  // namespace local
