// SPDX-License-Identifier: Apache-2.0
//
// What the tests of devices share: the device on trial, opened, and memory of any tier with a look
// at its bytes.
#pragma once

#include <orrery/device.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "conformance/test.h"

namespace orrery::judge {

using Bytes = std::vector<uint8_t>;

// The device of the plugin on trial, opened once per process. Skips if it is not here.
class Bench {
 public:
  explicit Bench(const Subject& subject);

  orr_stream* stream();  // a new one
  orr_event* event();    // a new one
  void copy(orr_stream* stream, const orr_buffer& to, const orr_buffer& from) const;
  void record(orr_event* event, orr_stream* stream) const;
  void wait(orr_stream* stream, orr_event* event) const;
  void sync(orr_event* event) const;
  void finish(orr_stream* stream);  // of all that was enqueued there
  bool records(orr_stream* stream) const;

  const orr_device_api& api;

 private:
  orr_event* finished_ = nullptr;
};

// An allocation of a tier. HOST and COMM are memory of the host's; others are the device's.
class Room {
 public:
  Room(Bench& bench, int32_t tier, uint64_t bytes);
  Room(const Room&) = delete;
  ~Room();

  orr_buffer part(uint64_t offset, uint64_t bytes) const { return {memory_, offset, bytes}; }
  orr_buffer whole() const { return part(0, bytes_); }
  const orr_memory& memory() const { return *memory_; }
  // Finished at return. Where the host has an address, by that.
  void put(const Bytes& bytes);
  Bytes get();

 private:
  Bench& bench_;
  uint64_t bytes_;
  Bytes own_;
  orr_memory made_{};
  orr_memory* given_ = nullptr;
  const orr_memory* memory_;
};

const char* tier_name(int32_t tier);
inline const std::vector<int32_t> tiers = {ORR_TIER_HOST, ORR_TIER_COMM, ORR_TIER_PINNED,
                                           ORR_TIER_DEVICE};

Bytes random_bytes(std::mt19937_64& random, uint64_t n);
// "byte 7 of 100 is 3 and should be 5", "" if they are equal.
std::string first_difference(const Bytes& got, const Bytes& want);

// Streams, events and recording; the rest is device_tests().
std::vector<Test> device_order_tests();

}  // namespace orrery::judge
