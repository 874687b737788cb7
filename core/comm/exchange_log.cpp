// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_log.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/traffic.hpp>

namespace orrery {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_of(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

template <size_t N>
void copy_text(char (&to)[N], const char* from) {
  const size_t n = from ? strnlen(from, N - 1) : 0;
  if (n) std::memcpy(to, from, n);
  to[n] = 0;
}

}  // namespace

uint64_t ExchangeLog::begin(const orr_coll& c, const char* among, int rank, int size) {
  const std::lock_guard lock(mutex_);
  Entry& e = entries_[next_ % kept];
  e.among = among;
  e.begin = now(), e.end = 0;
  e.sequence = c.sequence;
  e.bytes = c.op == ORR_COLL_RECV ? static_cast<uint64_t>(c.count * orr_dtype_bytes(c.dtype))
                                  : orr::traffic::bytes_sent(c, rank, size);
  e.op = c.op, e.dtype = c.dtype, e.root_or_peer = c.root_or_peer;
  copy_text(e.name, c.name), copy_text(e.where, c.where);
  return next_++;
}

void ExchangeLog::end(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (number >= first()) entries_[number % kept].end = now();
}

bool ExchangeLog::any_open() const {
  const std::lock_guard lock(mutex_);
  for (uint64_t n = first(); n < next_; ++n)
    if (entries_[n % kept].end == 0) return true;
  return false;
}

std::string ExchangeLog::text(int rank, int ranks, const std::string& error) const {
  const std::lock_guard lock(mutex_);
  std::string all = fmt::format("{{\"rank\": {}, \"ranks\": {}, \"error\": {}, \"exchanges\": [",
                                rank, ranks, text_of(error));
  for (uint64_t n = first(); n < next_; ++n) {
    const Entry& e = entries_[n % kept];
    nlohmann::ordered_json one = {
        {"number", n},      {"among", e.among}, {"op", orr::traffic::name(e.op)},
        {"name", e.name},   {"where", e.where}, {"bytes", e.bytes},
        {"begin", e.begin}, {"end", nullptr}};
    if (e.end) one["end"] = e.end;
    if (e.sequence) one["sequence"] = e.sequence;
    if (e.op != ORR_COLL_BARRIER) one["dtype"] = orr::dtype_name(e.dtype);
    if (orr::has_root(e.op)) one["root"] = e.root_or_peer;
    if (e.op == ORR_COLL_SEND || e.op == ORR_COLL_RECV) one["peer"] = e.root_or_peer;
    all += (n == first() ? "\n" : ",\n") + text_of(one);
  }
  return all + "]}\n";
}

}  // namespace orrery
