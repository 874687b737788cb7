// SPDX-License-Identifier: Apache-2.0
//
// A communicator whose ranks are on several hosts: a socket for each pair of them. Collectives are
// those that all backends over messages share (sdk/exchange.hpp), and their first messages carry
// the agreement on the operation. Large ones go in two layers where the ranks stand so that they
// can (layered.cpp).
#pragma once

#include "comm.h"

namespace local {

class Wide : public Group {
 public:
  // `host` is the communicator of those of its ranks that are on this host. Takes over the sockets,
  // by world rank.
  Wide(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id,
       std::unique_ptr<Comm> host, std::vector<int> sockets);
  ~Wide() override;

  orr_memory* allocate(uint64_t bytes, bool shared) override;
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 private:
  // wide.cpp
  void collective(const orr_coll& c) override;
  uint64_t moved(int peer, ssize_t n);
  uint64_t write(int peer, const iovec* from, int n) override;
  uint64_t read(int peer, void* to, uint64_t bytes) override;
  bool agree() override;
  bool has_closed(int peer) const override { return closed_[peer]; }
  void sleep(const Missing& missing, int64_t ns) override;
  int socket_of(int peer) const { return sockets_[world_of_[peer]]; }

  // layered.cpp
  class Counterparts;
  struct Scratch;
  bool has_equal_hosts() const;
  bool goes_in_layers(const orr_coll& c) const;
  void in_layers(const orr_coll& c);
  template <class F>
  void add_here(const orr_coll& c, const int64_t* n, const int64_t* at, F&& to);
  void tree_all_reduce(const orr_coll& c);
  void tree_reduce_scatter(const orr_coll& c);
  void all_gather(const orr_coll& c);

  std::unique_ptr<Comm> host_;
  const bool layered_;
  const std::vector<int> sockets_;   // by world rank
  std::vector<bool> closed_;         // no more will come from this rank
  bool agreed_ = true;               // on the collective under way
  std::vector<shared::Card> cards_;  // what each rank posts
};

}  // namespace local
