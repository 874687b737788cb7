// SPDX-License-Identifier: Apache-2.0
#include "library.h"

namespace data {
namespace {

std::recursive_mutex& library() {
  static auto* mutex = new std::recursive_mutex;  // datasets may be closed at exit
  return *mutex;
}

}  // namespace

Turn::Turn() : lock_(library()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print its errors
}

std::string last_error() {
  std::string reason;
  const auto first = [](unsigned number, const H5E_error2_t* error, void* to) -> herr_t {
    if (number == 0 && error->desc) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &reason);
  return reason.empty() ? "the library gives no reason" : reason;
}

}  // namespace data
