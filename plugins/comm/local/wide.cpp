// SPDX-License-Identifier: Apache-2.0
#include "wide.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/plugin.hpp>

namespace local {

Wide::Wide(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id,
           std::unique_ptr<Comm> host, std::vector<int> sockets)
    : Group(std::move(family), std::move(world_of), rank, id),
      host_(std::move(host)),
      layered_(has_equal_hosts()),
      sockets_(std::move(sockets)),
      closed_(size_, false),
      cards_(size_) {}

Wide::~Wide() {
  for (int socket : sockets_)
    if (socket >= 0) close(socket);
}

// Bytes that a call has moved to the peer or from it. After an error no more will.
uint64_t Wide::moved(int peer, ssize_t n) {
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) closed_[peer] = true;
  return static_cast<uint64_t>(std::max<ssize_t>(n, 0));
}

uint64_t Wide::write(int peer, const iovec* from, int n) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from);
  message.msg_iovlen = static_cast<size_t>(n);
  return moved(peer, sendmsg(socket_of(peer), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

uint64_t Wide::read(int peer, void* to, uint64_t bytes) {
  std::byte unwanted[4096];
  if (!to) to = unwanted, bytes = std::min(bytes, uint64_t{sizeof unwanted});
  return moved(peer, recv(socket_of(peer), to, bytes, MSG_DONTWAIT));
}

void Wide::sleep(const Missing&, int64_t ns) {
  std::vector<pollfd> fds;
  for (const Request& p : requests_)
    if (!p.done)
      fds.push_back({socket_of(p.peer), static_cast<short>(p.sends ? POLLOUT : POLLIN), 0});
  const timespec time{0, ns};
  ppoll(fds.data(), fds.size(), &time, nullptr);
}

// Cards go before the first messages of a collective, to and from everybody.
void Wide::exchange(const std::vector<orr::exchange::Message>& sends,
                    const std::vector<orr::exchange::Message>& recvs) {
  for (int r = 0; !agreed_ && r < size_; ++r)
    if (r != rank_) {
      add(*current_, r, true, card, sizeof(shared::Card), &cards_[rank_]);
      add(*current_, r, false, card, sizeof(shared::Card), &cards_[r]);
    }
  Group::exchange(sends, recvs);
}

// Looks at the cards once all are here, in the order of ranks, so that all ranks say the same.
bool Wide::agree() {
  if (agreed_) return true;
  for (const Request& p : requests_)
    if (p.head.kind == card && !p.sends && !p.done) return false;
  const std::string apart = shared::disagreement(cards_, world_of_);
  if (!apart.empty()) family_->die(ORR_FAILED, apart);
  return agreed_ = true;
}

void Wide::collective(const orr_coll& c) {
  current_ = &c;
  cards_[rank_] = shared::card_of(c, size_);
  agreed_ = false;
  if (goes_in_layers(c)) return in_layers(c);
  if (orr::adds(c.op))
    orr::exchange::reduce(c, rank_, size_, *this);
  else if (c.op != ORR_COLL_BARRIER)
    orr::exchange::move(c, rank_, size_, *this);
  if (!agreed_) exchange({}, {});  // to agree is to have met
}

// In place for the ranks of this host.
orr_memory* Wide::allocate(uint64_t bytes, bool shared) {
  if (shared)
    throw orr::Error(ORR_UNIMPLEMENTED, "ranks of several hosts have no memory that all share");
  check_equal(bytes);
  return host_->allocate(bytes, false);
}

}  // namespace local
