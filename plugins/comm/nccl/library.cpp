// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <cstdlib>

#include <orrery/sdk/plugin.hpp>

namespace nccl {
namespace {

constexpr int oldest = 21800;  // the first with splits and with communicators that do not block

[[noreturn]] void unavailable(const std::string& why) { throw orr::Error(ORR_UNAVAILABLE, why); }

std::string dotted(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

// Never closed: streams, threads and handlers of both libraries outlive their last user.
void* open(const char* variable, const char* usual, const std::string& missing) {
  const char* named = std::getenv(variable);
  void* handle = dlopen(named ? named : usual, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const std::string why = dlerror();
  if (named) unavailable(std::string(variable) + " names a library that cannot be loaded: " + why);
  const bool absent = why.find("cannot open shared object file") != std::string::npos;
  unavailable(absent ? missing : std::string(usual) + " cannot be loaded: " + why);
}

template <class F>
void find(void* handle, const char* name, F*& to) {
  to = reinterpret_cast<F*>(dlsym(handle, name));
}

template <class F>
void need(void* handle, const char* name, F*& to) {
  find(handle, name, to);
  if (!to)
    unavailable(std::string("the library has no ") + name + ": it is too old for this plugin");
}

}  // namespace

#define ORR_TEXT_OF(name) #name
#define ORR_TEXT(name) ORR_TEXT_OF(name)
#define ORR_NEED(name) need(handle, ORR_TEXT(name), name);

Library::Library() {
  void* handle = open("ORRERY_CUDA_LIBRARY", "libcuda.so.1",
                      "no NVIDIA driver here (libcuda.so.1 was not found)");
  ORR_CUDA_FUNCTIONS(ORR_NEED)
  handle = open("ORRERY_NCCL_LIBRARY", "libnccl.so.2",
                "libnccl.so.2 was not found: install NCCL, or name it with ORRERY_NCCL_LIBRARY");
  int code = 0;
  need(handle, "ncclGetVersion", ncclGetVersion);
  ncclGetVersion(&code);
  version = dotted(code);
  if (code < oldest)
    unavailable("NCCL " + version + " is too old: this plugin needs " + dotted(oldest));
  ORR_NCCL_FUNCTIONS(ORR_NEED)
  find(handle, "ncclCommRevoke", revoke);
  find(handle, "ncclMemAlloc", memory_allocate);
  find(handle, "ncclMemFree", memory_free);
  find(handle, "ncclCommWindowRegister", window_register);
  find(handle, "ncclCommWindowDeregister", window_deregister);
  find(handle, "ncclCommRegister", buffer_register);
  find(handle, "ncclCommDeregister", buffer_deregister);
}

const Library& library() {
  static const Library opened;
  return opened;
}

std::string why_not_here() {
  try {
    const Library& lib = library();
    int devices = 0;
    check_cuda(lib.cuInit(0), "cuInit");
    check_cuda(lib.cuDeviceGetCount(&devices), "cuDeviceGetCount");
    return devices > 0 ? "" : "the NVIDIA driver shows no GPU: see CUDA_VISIBLE_DEVICES";
  } catch (const orr::Error& e) {
    return e.what();
  }
}

void check_cuda(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* text = nullptr;
  library().cuGetErrorString(code, &text);
  throw orr::Error(ORR_FAILED,
                   std::string(what) + ": " + (text ? text : "error " + std::to_string(code)));
}

// A call on a communicator that does not block is a success when it is under way.
void check_nccl(ncclResult_t code, const char* what) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  const char* last = library().ncclGetLastError(nullptr);
  std::string text =
      std::string(what) + ": NCCL " + library().version + ": " + library().ncclGetErrorString(code);
  if (last && *last) text += std::string("; ") + last;
  for (char& c : text)
    if (c == '\n') c = ' ';
  throw orr::Error(ORR_FAILED, text);
}

}  // namespace nccl
