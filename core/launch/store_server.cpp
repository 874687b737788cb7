// SPDX-License-Identifier: Apache-2.0
#include "launch/store_server.h"

#include <cstdlib>
#include <utility>

#include "launch/socket.h"

namespace orrery {

// Takes a rank's connection. The rank's address goes into the table, for backends that connect
// ranks themselves.
void StoreServer::adopt(int rank, std::unique_ptr<Connection> connection) {
  put("address/" + std::to_string(rank), peer_address(connection->socket()));
  for (size_t r = 0; r < ranks_.size(); ++r)
    if (const int at = ranks_[r].ended)
      connection->send(wire::ended, static_cast<uint32_t>(r), "", std::to_string(at));
  if (!blamed_.empty()) connection->send(wire::blame, 0, "", blamed_);
  ranks_[rank].connection = std::move(connection);
}

bool StoreServer::serve(int rank) {
  Connection* from = ranks_[rank].connection.get();
  if (!from) return false;
  from->flush();
  for (Message message; from->receive(message);) handle(rank, message);
  if (from->at_end()) ranks_[rank].connection.reset();
  return ranks_[rank].connection != nullptr;
}

void StoreServer::blame(const std::string& why) {
  if (!blamed_.empty()) return;
  blamed_ = why;
  tell_all(wire::blame, 0, why);
}

void StoreServer::mark_ended(int rank) {
  serve(rank);
  if (ranks_[rank].ended) return;
  ranks_[rank].ended = ++ended_;
  tell_all(wire::ended, rank, std::to_string(ended_));
  for (const auto& [key, questions] : std::exchange(waiting_, {}))
    for (const Question& q : questions) answer(q, wire::lost, "");
}

void StoreServer::tell_all(wire::Kind kind, int id, const std::string& value) {
  for (Rank& r : ranks_)
    if (r.connection) r.connection->send(kind, static_cast<uint32_t>(id), "", value);
}

void StoreServer::handle(int rank, const Message& message) {
  const Question question{rank, message.frame.id};
  switch (message.frame.kind) {
    case wire::put: put(message.key, message.value); break;
    case wire::get: look_up(question, message.key); break;
    case wire::report:
      if (ranks_[rank].report.empty()) ranks_[rank].report = message.value;
      break;
    case wire::leave: ranks_[rank].left = true; break;
    case wire::blame: blame(message.value); break;
    case wire::ask: pass_on(question, message.key); break;
    case wire::doing:
      for (const Question& q : std::exchange(ranks_[rank].curious, {}))
        answer(q, wire::value, message.value);
      break;
    default: break;
  }
}

void StoreServer::look_up(const Question& q, const std::string& key) {
  if (const auto found = table_.find(key); found != table_.end())
    answer(q, wire::value, found->second);
  else if (ended_ > 0)
    answer(q, wire::lost, "");
  else
    waiting_[key].push_back(q);
}

// Passes a question on to the rank that it is about. If that has no connection, there is no answer.
void StoreServer::pass_on(const Question& q, const std::string& about) {
  const size_t rank = static_cast<size_t>(std::atoi(about.c_str()));
  if (rank >= ranks_.size() || !ranks_[rank].connection) return;
  ranks_[rank].curious.push_back(q);
  ranks_[rank].connection->send(wire::ask, 1, "", "");
}

void StoreServer::put(const std::string& key, const std::string& value) {
  table_[key] = value;
  if (const auto found = waiting_.extract(key))
    for (const Question& q : found.mapped()) answer(q, wire::value, value);
}

void StoreServer::answer(const Question& q, wire::Kind kind, const std::string& value) {
  if (Connection* to = ranks_[q.rank].connection.get()) to->send(kind, q.id, "", value);
}

}  // namespace orrery
