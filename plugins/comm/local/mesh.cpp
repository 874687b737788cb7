// SPDX-License-Identifier: Apache-2.0
#include "mesh.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <orrery/sdk/plugin.hpp>
#include <utility>

#include "../shared/blame.h"
#include "family.h"

namespace local {
namespace {

constexpr int64_t ms = 1000000;
constexpr int most_parts = 32;  // of what is written at once

bool is_patient(int error) { return error == EAGAIN || error == EINTR; }

bool same(const Head& a, const Head& b) {
  return a.lane == b.lane && a.kind == b.kind && a.tag == b.tag;
}

}  // namespace

Mesh::Mesh(Family& family, std::vector<int> sockets)
    : family_(family),
      sockets_(std::move(sockets)),
      ended_(sockets_.size(), false),
      inbound_(sockets_.size()),
      writer_(sockets_.size(), nullptr) {}

Mesh::~Mesh() {
  for (int socket : sockets_)
    if (socket >= 0) close(socket);
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
  const int patience = family_.spin ? 200 : 20;
  int fruitless = 0;
  std::optional<shared::Wait> wait;
  const Request* next = nullptr;  // the first that is not done
  for (;;) {
    bool moved = false;
    int lost = -1;  // a rank that something is still wanted of, and nothing more comes from
    {
      std::lock_guard lock(mutex_);
      moved = progress(all);
      const auto undone = std::find_if(all.begin(), all.end(), [](auto& p) { return !p.done; });
      const Request* const before = std::exchange(next, undone == all.end() ? nullptr : &*undone);
      moved |= next != before;  // maybe by another thread
      if (moved) check();
      for (const Request& p : all)
        if (!p.done && ended_[p.peer]) lost = p.peer;
    }
    if (!next) return;
    if (moved) {
      fruitless = 0;
      wait.reset();
    } else if (++fruitless < patience) {
      sched_yield();  // to ranks of other hosts too, which may be namespaces of this machine
    } else {
      family_.check_alive();
      if (lost >= 0) family_.die_of(lost, next->coll);
      if (!wait) wait.emplace(family_.boot, next->coll);
      const std::string verdict = wait->look(next->peer);
      if (!verdict.empty()) family_.die(ORR_DEADLINE, verdict);
      sleep(all);
    }
  }
}

// A thread that takes what comes for another wakes nobody: who may wait for that looks again soon.
void Mesh::sleep(const std::vector<Request>& all) {
  std::vector<pollfd> fds;
  {
    std::lock_guard lock(mutex_);
    for (const Request& p : all)
      if (!p.done)
        fds.push_back({sockets_[p.peer], static_cast<short>(p.sends ? POLLOUT : POLLIN), 0});
  }
  const timespec time{0, running_ > 1 ? ms / 5 : 8 * ms};
  ppoll(fds.data(), fds.size(), &time, nullptr);
}

// Gives as many bytes as have come, up to so many.
uint64_t Mesh::read(int peer, void* to, uint64_t bytes) {
  const ssize_t n = recv(sockets_[peer], to, bytes, MSG_DONTWAIT);
  if (n > 0) return static_cast<uint64_t>(n);
  if (bytes > 0 && (n == 0 || !is_patient(errno))) ended_[peer] = true;
  return 0;
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
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(n);
  const ssize_t sent = sendmsg(sockets_[peer], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && !is_patient(errno)) ended_[peer] = true;
  if (sent <= 0) return false;
  uint64_t left = static_cast<uint64_t>(sent);
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

// A message of another size than is wanted stays a stray; who wants it learns why from its
// header.
bool Mesh::open_message(int peer, std::vector<Request>& all) {
  Inbound& in = inbound_[peer];
  in.got += read(peer, reinterpret_cast<char*>(&in.head) + in.got, sizeof(Head) - in.got);
  if (in.got < sizeof(Head)) return false;
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
  const uint64_t n = read(peer, in.to + in.got, in.head.bytes - in.got);
  in.got += n;
  if (in.got < in.head.bytes) return n > 0;
  (in.request ? in.request->done : in.strays.back().complete) = true;
  in.open = false;
  in.got = 0;
  return true;
}

}  // namespace local
