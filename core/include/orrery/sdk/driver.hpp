// SPDX-License-Identifier: Apache-2.0
//
// A driver as a class: its methods are the slots of driver.h, and errors are exceptions.
#pragma once

#include <orrery/driver.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/program.hpp>

namespace orr {

// Each method is the slot of orr_driver with its name; an exception becomes an error of that call.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual void write(const Program& step, const std::vector<int64_t>& leaf_first) = 0;
  virtual void open(const orr_driver_host& host) = 0;
  virtual void step(const orr_driver_step& step, double* outputs) = 0;
  virtual void settle() = 0;
  virtual void stop(const std::string& why) = 0;
  virtual uint64_t predicted() const = 0;
};

// Passes the driver to the host. `remedy` must live as long as the plugin.
inline void drive(const Program& program, std::unique_ptr<Driver> driver, const char* remedy) {
  static constexpr auto of = [](void* arg) { return static_cast<Driver*>(arg); };
  orr_driver table{};
  table.size = sizeof table, table.remedy = remedy;
  table.arg = driver.release();
  table.release = [](void* arg) { delete of(arg); };
  table.write = [](void* arg, orr_program* step, const orr_edit* e, const int64_t* first,
                   int32_t ranks) {
    return guard([&] { of(arg)->write({step, e}, {first, first + ranks + 1}); });
  };
  table.open = [](void* arg, const orr_driver_host* host) {
    return guard([&] { of(arg)->open(*host); });
  };
  table.step = [](void* arg, const orr_driver_step* step, double* outputs) {
    return guard([&] { of(arg)->step(*step, outputs); });
  };
  table.settle = [](void* arg) { return guard([&] { of(arg)->settle(); }); };
  table.stop = [](void* arg, const char* why) { of(arg)->stop(why); };
  table.predicted = [](void* arg) { return of(arg)->predicted(); };
  check(program.edit()->drive(program.raw(), &table));
}

// Packs several states into one message, one after another without gaps. REQUIRES: they lie in host
// memory.
class PackedStates {
 public:
  PackedStates() = default;
  PackedStates(const orr_driver_host& host, const std::vector<std::string>& states) {
    for (const std::string& name : states) {
      parts_.emplace_back();
      check(host.state(host.self, name.c_str(), &parts_.back()));
      bytes_ += parts_.back().bytes;
    }
  }
  size_t bytes() const { return bytes_; }
  // `to` and `from` have bytes() bytes.
  void pack(std::byte* to) const {
    for (const orr_buffer& part : parts_) {
      std::memcpy(to, data<std::byte>(part), part.bytes);
      to += part.bytes;
    }
  }
  void unpack(const std::byte* from) const {
    for (const orr_buffer& part : parts_) {
      std::memcpy(data<std::byte>(part), from, part.bytes);
      from += part.bytes;
    }
  }
  void clear() const {
    for (const orr_buffer& part : parts_) std::memset(data<std::byte>(part), 0, part.bytes);
  }

 private:
  std::vector<orr_buffer> parts_;
  size_t bytes_ = 0;
};

}  // namespace orr
