// SPDX-License-Identifier: Apache-2.0
#include "mesh.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <orrery/sdk/plugin.hpp>
#include <utility>

#include "../shared/operation.h"
#include "family.h"

namespace local {
namespace {

constexpr int64_t ms = 1000000;
constexpr size_t ahead_bytes = 16 << 10;  // read at once: heads and short messages
constexpr int most_parts = 32;            // of what is written at once

bool same(const Head& a, const Head& b) {
  return a.lane == b.lane && a.kind == b.kind && a.tag == b.tag;
}

std::vector<int> notes_of(const std::vector<Line>& lines) {
  std::vector<int> sockets;
  for (const Line& line : lines) sockets.push_back(line.notes);
  return sockets;
}

}  // namespace

Mesh::Mesh(Family& family, const std::vector<Line>& lines)
    : family_(family),
      notes_(family.boot.rank, notes_of(lines)),
      channels_(lines.size()),
      inbound_(lines.size()),
      writer_(lines.size(), nullptr) {
  const int me = family.boot.rank;
  int neighbours = 0, own = 0;
  std::vector<int> place(lines.size(), -1);  // on this host
  for (int r = 0; r < static_cast<int>(lines.size()); ++r)
    if (family.host_of[r] == family.host_of[me]) place[r] = neighbours++;
  own = place[me];
  for (size_t r = 0; r < lines.size(); ++r) {
    inbound_[r].ahead.resize(ahead_bytes);
    if (place[r] >= 0)
      channels_[r] = std::make_unique<RingChannel>(family.world.ring(own, place[r]),
                                                   family.world.ring(place[r], own));
    else
      channels_[r] = std::make_unique<SocketChannel>(lines[r].data);
  }
}

void Mesh::listen() {
  const Notes::News news = notes_.listen(false);
  if (news.code != 0) family_.kill(news.code, news.text);
}

int Mesh::look_around(int who, const orr_coll* current, int64_t waited, Question& question) {
  const Notes::News news = notes_.listen(true);
  if (news.code != 0) family_.kill(news.code, news.text);
  family_.check_alive();
  if (news.dead >= 0) lost_ = news.dead;
  if (lost_ >= 0) return lost_;
  if (family_.boot.dead(family_.boot.store, who)) return who;
  const auto step = question.patience.step(waited, family_.deadline_of(current));
  if (step == shared::Patience::ask) {
    question.asked_ns = shared::now_ns();
    notes_.ask_all();
  } else if (step == shared::Patience::judge) {
    blame(who, current, question);
  }
  return -1;
}

// Who waits answers at once. Who does not is frozen, or computes. Returns if it is to be waited
// for.
void Mesh::blame(int who, const orr_coll* current, const Question& question) {
  const std::string where = shared::in_operation(current);
  const int64_t waited = question.patience.waited_ns();
  std::vector<int> silent;
  if (notes_.silent(who, question.asked_ns)) silent.push_back(who);
  for (int r = 0; r < family_.boot.world_size; ++r)
    if (r != who && notes_.silent(r, question.asked_ns)) silent.push_back(r);
  if (!silent.empty()) {
    const std::string verdict = shared::judge(family_.boot, silent, waited, where);
    if (verdict.empty()) return;
    family_.die(ORR_DEADLINE, verdict);
  }
  family_.die(ORR_DEADLINE, "ranks " + std::to_string(who) + " and " +
                                std::to_string(family_.boot.rank) + " wait for each other since " +
                                shared::seconds(waited) + where);
}

// A thread that throws takes its requests along: others may not write to them any more.
void Mesh::run(std::vector<Request>& all, const std::function<void()>& check) {
  ++running_;
  try {
    move(all, check);
  } catch (...) {
    std::lock_guard lock(mutex_);
    failed_ = true;
    throw;
  }
  --running_;
}

void Mesh::move(std::vector<Request>& all, const std::function<void()>& check) {
  constexpr int64_t at_most = 50 * ms;  // a pause of this very process is no sign against its peers
  const int patience = family_.spin ? 200 : 20;
  int idle = 0;
  int64_t last = 0, waited = 0;
  Question question;
  const Request* next = nullptr;  // the first that is not done
  const auto advance = [&] {
    std::lock_guard lock(mutex_);
    const bool own = progress(all);
    const auto undone = std::find_if(all.begin(), all.end(), [](auto& p) { return !p.done; });
    const Request* const before = std::exchange(next, undone == all.end() ? nullptr : &*undone);
    const bool moved = own || next != before;  // maybe by another thread
    if (moved) check();
    return moved;
  };
  for (;;) {
    const bool moved = advance();
    if (!next) return;
    if (moved) {
      idle = 0;
      waited = 0;
      question = {};
      continue;
    }
    if (++idle < patience) {
      sched_yield();  // to ranks of other hosts too, which may be namespaces of this machine
      last = shared::now_ns();
      continue;
    }
    const int64_t now = shared::now_ns();
    waited += std::min(now - last, at_most);
    last = now;
    const int dead = look_around(next->peer, next->coll, waited, question);
    if (dead < 0)
      sleep(all);
    else if (!advance())
      family_.die_of(dead, next->coll);
  }
}

// Rings ring no bell here, nor does a thread that takes what comes for another: who waits for these
// looks again soon.
void Mesh::sleep(const std::vector<Request>& all) {
  std::vector<pollfd> fds;
  bool has_ring = false;
  std::unique_lock lock(mutex_);
  for (const Request& p : all) {
    if (p.done) continue;
    const int fd = channels_[p.peer]->socket();
    if (fd < 0)
      has_ring = true;
    else
      fds.push_back({fd, static_cast<short>(p.sends ? POLLOUT : POLLIN), 0});
  }
  lock.unlock();
  notes_.add_to(fds);
  const timespec time{0, has_ring || running_ > 1 ? ms / 5 : 8 * ms};
  ppoll(fds.data(), fds.size(), &time, nullptr);
}

// Says whether any of them has moved.
bool Mesh::progress(std::vector<Request>& all) {
  bool moved = false;
  if (failed_) return false;
  for (size_t i = 0; i < all.size(); ++i) {
    const Request& p = all[i];
    if (p.done) continue;
    const bool first = std::none_of(
        all.begin(), all.begin() + static_cast<int64_t>(i),
        [&](const Request& e) { return !e.done && e.peer == p.peer && e.sends == p.sends; });
    if (first) moved |= p.sends ? push(p.peer, all) : pull(p.peer, all);
  }
  return moved;
}

// Messages to one peer leave in order, as many at once as fit, each as a whole.
bool Mesh::push(int peer, std::vector<Request>& all) {
  if (writer_[peer] && writer_[peer] != &all) return false;
  iovec parts[most_parts];
  int n = 0;
  const auto add = [&](void* from, uint64_t bytes) {
    if (bytes > 0) parts[n++] = {from, bytes};
  };
  for (Request& p : all) {
    if (p.done || !p.sends || p.peer != peer) continue;
    if (n + 2 > most_parts) break;
    const uint64_t of_head = std::min<uint64_t>(p.moved, sizeof(Head)), of_data = p.moved - of_head;
    add(reinterpret_cast<char*>(&p.head) + of_head, sizeof(Head) - of_head);
    add(p.data + of_data, p.head.bytes - of_data);
  }
  uint64_t left = channels_[peer]->write(parts, n);
  if (left == 0) return false;
  for (Request& p : all) {
    if (p.done || !p.sends || p.peer != peer) continue;
    const uint64_t part = std::min(left, sizeof(Head) + p.head.bytes - p.moved);
    p.moved += part;
    left -= part;
    p.done = p.moved == sizeof(Head) + p.head.bytes;
    writer_[peer] = p.done ? nullptr : &all;
    if (left == 0) break;
  }
  return true;
}

// Messages that came early and are wanted now; says of the rest whether any is wanted.
bool Mesh::take_strays(int peer, std::vector<Request>& all, bool& wanted) {
  bool taken = false;
  auto& strays = inbound_[peer].strays;
  for (Request& p : all) {
    if (p.sends || p.begun || p.peer != peer) continue;
    auto found = std::find_if(strays.begin(), strays.end(), [&](const Stray& s) {
      return same(s.head, p.head) && s.head.bytes == p.head.bytes;
    });
    if (found == strays.end() || !found->complete) {
      wanted = true;
      continue;
    }
    if (!found->bytes.empty()) std::memcpy(p.data, found->bytes.data(), found->bytes.size());
    p.begun = p.done = taken = true;
    strays.erase(found);
  }
  return taken;
}

bool Mesh::pull(int peer, std::vector<Request>& all) {
  bool moved = false;
  for (;;) {
    Inbound& in = inbound_[peer];
    bool wanted = false;
    moved |= take_strays(peer, all, wanted);
    if (!in.open && !(wanted && open_message(peer, all))) return moved;
    if (!fetch(peer)) return moved;
    moved = true;
  }
}

bool Mesh::fill(int peer) {
  Inbound& in = inbound_[peer];
  std::memmove(in.ahead.data(), in.ahead.data() + in.begin, in.end - in.begin);
  in.end -= std::exchange(in.begin, 0);
  const uint64_t n = channels_[peer]->read(in.ahead.data() + in.end, in.ahead.size() - in.end);
  in.end += n;
  return n > 0;
}

// A message of another size than is wanted stays a stray; who wants it learns why from its
// envelope.
bool Mesh::open_message(int peer, std::vector<Request>& all) {
  Inbound& in = inbound_[peer];
  while (in.end - in.begin < sizeof(Head))
    if (!fill(peer)) return false;
  std::memcpy(&in.head, in.ahead.data() + in.begin, sizeof(Head));
  in.begin += sizeof(Head);
  in.open = true;
  in.got = 0;
  const auto match = std::find_if(all.begin(), all.end(), [&](const Request& p) {
    return !p.sends && !p.begun && p.peer == peer && same(p.head, in.head);
  });
  if (match != all.end() && match->head.bytes == in.head.bytes) {
    match->begun = true;
    in.request = &*match;
    in.to = match->data;
  } else {
    in.strays.push_back({in.head, std::vector<char>(in.head.bytes)});
    in.request = nullptr;
    in.to = in.strays.back().bytes.data();
  }
  return true;
}

// Takes what has come of the open message; says whether anything had, or the message is complete.
bool Mesh::fetch(int peer) {
  Inbound& in = inbound_[peer];
  const uint64_t before = in.got;
  const uint64_t here = std::min<uint64_t>(in.head.bytes - in.got, in.end - in.begin);
  if (here > 0) std::memcpy(in.to + in.got, in.ahead.data() + in.begin, here);
  in.begin += here;
  in.got += here;
  if (in.got < in.head.bytes && in.head.bytes - in.got < ahead_bytes / 2) {
    if (fill(peer)) return true;
  } else if (in.got < in.head.bytes) {
    in.got += channels_[peer]->read(in.to + in.got, in.head.bytes - in.got);
  }
  if (in.got < in.head.bytes) return in.got > before;
  (in.request ? in.request->done : in.strays.back().complete) = true;
  in.open = false;
  return true;
}

}  // namespace local
