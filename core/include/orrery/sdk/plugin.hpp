// SPDX-License-Identifier: Apache-2.0
//
// The thin C++20 layer for plugin authors: guards that turn exceptions into statuses, errors, typed
// access to buffers and attributes. Header-only; it uses only the plugin interface and the standard
// library.
#pragma once

#include <orrery/host.h>
#include <orrery/kernel.h>
#include <orrery/plugin.h>

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace orr {

// The host's table; set by `attach` in the plugin's entry function.
inline const orr_host* host = nullptr;

// An error with a code of types.h. Throw it anywhere below a guard.
struct Error : std::runtime_error {
  Error(int32_t code, const std::string& message) : std::runtime_error(message), code(code) {}
  int32_t code;
};

// Runs `body` and turns an exception into a status. Every function that the host can call and that
// returns a status should be one guard around its whole body.
template <class Body>
orr_status* guard(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return nullptr;
  } catch (const Error& e) {
    return host->error(e.code, e.what());
  } catch (const std::exception& e) {
    return host->error(ORR_FAILED, e.what());
  } catch (...) {
    return host->error(ORR_FAILED, "it threw something that is no std::exception");
  }
}

// Throws the status as an Error and releases it; does nothing for NULL.
inline void check(orr_status* status) {
  if (!status) return;
  Error error(host->error_code(status), host->error_message(status));
  host->error_release(status);
  throw error;
}

// Fetches the host's services. REQUIRES: called first in the plugin's entry function.
inline bool attach(const orr_bootstrap* boot) {
  host = static_cast<const orr_host*>(boot->host("host", 1));
  return host != nullptr;
}

template <class T>
T* data(const orr_buffer& b) {
  return static_cast<T*>(orr_buffer_host(&b));
}

// The attribute `name` of an op, or null.
inline const orr_attr* attr(const orr_op& op, std::string_view name) {
  for (int i = 0; i < op.n_attrs; ++i)
    if (name == op.attrs[i].name) return &op.attrs[i];
  return nullptr;
}
inline int64_t attr_int(const orr_op& op, std::string_view name, int64_t fallback) {
  const orr_attr* a = attr(op, name);
  return a ? a->i : fallback;
}
inline double attr_real(const orr_op& op, std::string_view name, double fallback) {
  const orr_attr* a = attr(op, name);
  return a ? a->f : fallback;
}
inline std::string_view attr_text(const orr_op& op, std::string_view name,
                                  std::string_view fallback) {
  const orr_attr* a = attr(op, name);
  return a ? std::string_view(a->text) : fallback;
}

inline int64_t elements(const orr_tensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.rank; ++i) n *= t.dims[i];
  return n;
}

// Runs fn(i) for i in [0, n) on the host's thread pool. fn must not throw.
template <class Fn>
void parallel_for(int64_t n, Fn&& fn) {
  host->parallel_for(
      n, [](void* arg, int64_t i) { (*static_cast<std::remove_reference_t<Fn>*>(arg))(i); }, &fn);
}

// Copies text into a char array of fixed size, cut if need be.
template <size_t N>
void copy_text(char (&to)[N], std::string_view from) {
  size_t n = from.size() < N - 1 ? from.size() : N - 1;
  std::memcpy(to, from.data(), n);
  to[n] = 0;
}

}  // namespace orr
