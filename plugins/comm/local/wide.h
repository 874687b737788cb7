// SPDX-License-Identifier: Apache-2.0
//
// A communicator whose ranks are on several hosts: collectives are those that all backends over
// messages share (shared/exchange.h), and their first messages carry the agreement on the
// operation. Large ones go in two layers where the ranks stand so that they can (layered.cpp).
#pragma once

#include <memory>
#include <vector>

#include <orrery/sdk/exchange.hpp>

#include "comm.h"
#include "family.h"
#include "mesh.h"

namespace local {

class Wide : public Group, public orr::exchange::Messenger {
 public:
  // `host` is the communicator of those of its ranks that are on this host.
  Wide(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id,
       std::unique_ptr<Comm> host);

  orr_memory* allocate(uint64_t bytes, bool shared) override;
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override;

 private:
  // wide.cpp
  void collective(const orr_coll& c) override;
  void transfer(const orr_coll* ops, int n) override;
  void add_cards(std::vector<Request>& all);
  bool verify_agreement(const std::vector<Request>& all);
  Request request(const orr_coll& c, int peer, bool sends, Kind kind, int32_t tag, void* data,
                  uint64_t bytes) const;

  // layered.cpp
  class Counterparts;
  struct Scratch;
  bool has_equal_hosts() const;
  bool goes_in_layers(const orr_coll& c) const;
  void in_layers(const orr_coll& c);
  template <class F>
  void add_here(const orr_coll& c, const std::vector<int64_t>& n, const std::vector<int64_t>& at,
                F&& to);
  void tree_all_reduce(const orr_coll& c);
  void tree_reduce_scatter(const orr_coll& c);
  void all_gather(const orr_coll& c);

  std::unique_ptr<Comm> host_;
  const bool layered_;
  bool agreed_ = true;               // on the collective under way
  std::vector<shared::Card> cards_;  // what each rank posts
};

}  // namespace local
