// SPDX-License-Identifier: Apache-2.0
//
// HDF5's library, which takes one thread at a time: whoever calls it holds a Turn.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

#include "../refuse.h"

namespace data {

class Turn {
 public:
  Turn();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

// An object of the library, closed at the end.
template <herr_t (*close)(hid_t)>
class Held {
 public:
  explicit Held(hid_t id = H5I_INVALID_HID) : id_(id) {}
  Held(Held&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Held() {
    const Turn turn;
    if (id_ >= 0) close(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

 private:
  hid_t id_;
};
using HeldFile = Held<H5Fclose>;
using HeldSet = Held<H5Dclose>;
using HeldType = Held<H5Tclose>;
using HeldSpace = Held<H5Sclose>;
using HeldList = Held<H5Pclose>;

// What the library's last error was: the innermost of its reasons.
std::string last_error();

}  // namespace data
