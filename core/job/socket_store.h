// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the store: a socket to whoever serves it, and the page of the dead.
#pragma once

#include <mutex>

#include "job/store.h"
#include "job/wire.h"

namespace orrery {

class SocketStore : public Store {
 public:
  enum class Server { launcher, rank_0 };

  // Takes over the socket; closes `board`, the page's descriptor.
  SocketStore(Server server, int socket, int board, int size, std::string job);
  ~SocketStore() override;
  SocketStore(const SocketStore&) = delete;

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, int64_t deadline_ns) override;
  bool dead(int rank) const override;
  void report(const std::string& error) override;
  const std::string& job() const override { return job_; }

 private:
  int first_dead() const;
  uint32_t send(wire::Kind kind, const std::string& key, const std::string& value);
  bool receive(uint32_t id, std::string& value);
  const char* server_name() const;

  const Server server_;
  std::mutex mutex_;
  int socket_, size_;
  const wire::Board* board_ = nullptr;
  uint32_t last_id_ = 0;
  std::string job_;
};

}  // namespace orrery
