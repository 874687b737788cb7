// SPDX-License-Identifier: Apache-2.0
#include "misuse.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>

#ifndef FAKE_NAME
#define FAKE_NAME "fake NCCL"
#endif

namespace fake {
namespace {

// FAKE_CALLS names a file that gets a line "CALL\tCOUNT" for each call, from each process.
void append_counts();

std::mutex& counts_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::map<std::string, uint64_t>& counts() {
  static auto& all = *new std::map<std::string, uint64_t>;
  static const int at_exit = std::atexit(append_counts);
  (void)at_exit;
  return all;
}

void append_counts() {
  const char* path = std::getenv("FAKE_CALLS");
  if (!path) return;
  std::string text;
  for (const auto& [what, n] : counts()) text += what + '\t' + std::to_string(n) + '\n';
  std::ofstream(path, std::ios::app) << text << std::flush;
}

}  // namespace

void note_call(const char* what) {
  std::lock_guard lock(counts_mutex());
  ++counts()[what];
}

uint64_t calls(const std::string& what) {
  std::lock_guard lock(counts_mutex());
  return counts()[what];
}

thread_local bool in_callback = false;

uint64_t seed() {
  static const uint64_t chosen = [] {
    const char* named = std::getenv("FAKE_NCCL_SEED");
    return named ? std::strtoull(named, nullptr, 10) : uint64_t{std::random_device{}()};
  }();
  return chosen;
}

uint64_t dice(uint64_t n) {
  static std::atomic<uint64_t> rolls{0};
  uint64_t h = (seed() + 1) * 0x9E3779B97F4A7C15 + ++rolls * 0xBF58476D1CE4E5B9;
  h = (h ^ (h >> 31)) * 0x94D049BB133111EB;
  return (h ^ (h >> 29)) % n;
}

void misuse(const std::string& rule, const std::string& detail) {
  const std::string line =
      FAKE_NAME ": " + rule + ": " + detail + " (seed " + std::to_string(seed()) + ")\n";
  [[maybe_unused]] const ssize_t written = write(2, line.data(), line.size());
  std::abort();
}

}  // namespace fake
