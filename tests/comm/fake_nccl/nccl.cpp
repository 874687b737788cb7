// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions over ncclComm, and the groups of calls.
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "comm.h"
#include "driver.h"
#include "group.h"
#include "memory.h"
#include "misuse.h"
#include "place.h"

namespace fake {
namespace {

// Whoever ends a thread in the middle of a group has forgotten the group's end.
struct Group {
  int depth = 0;
  std::vector<Call> calls;
  ~Group() { need_no_open_group("the end of the thread"); }
};
thread_local Group group;

std::string& last_error() {
  static std::string& text = *new std::string;
  return text;
}

uint64_t unit_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: misuse("unknown type", std::to_string(type));
  }
}

Card card(const char* name, ncclDataType_t type, int redop, int root, uint64_t count) {
  Card c{};
  snprintf(c.name, sizeof c.name, "%s", name);
  c.dtype = type, c.redop = redop, c.root = root, c.count = count;
  return c;
}

ncclResult_t launch_all(bool alone) {
  std::vector<Call> mine;
  mine.swap(group.calls);
  ncclResult_t result = ncclSuccess;
  while (!mine.empty()) {
    ncclComm* comm = mine.front().comm;
    std::vector<Call> own;
    for (const Call& c : mine)
      if (c.comm == comm) own.push_back(c);
    std::erase_if(mine, [&](const Call& c) { return c.comm == comm; });
    comm->grouped = std::thread::id{};
    const Entry entry(comm, own.front().card.name);
    if (const ncclResult_t r = comm->launch(own, alone)) result = r;
  }
  return result;
}

// A call is checked when it is made and posted when its group ends, which is at once outside of
// one.
ncclResult_t post(Call c, const void* send, void* recv, cudaStream_t stream) {
  const Entry entry(c.comm, c.card.name);
  if (c.comm->state != ncclComm::usable)
    misuse("call on a communicator that is not formed", c.card.name);
  c.send = c.send_bytes ? memory::behind(send, c.send_bytes, c.card.name) : nullptr;
  c.recv = c.recv_bytes ? memory::behind(recv, c.recv_bytes, c.card.name) : nullptr;
  c.stream = &stream_behind(stream);
  c.comm->grouped = std::this_thread::get_id();
  group.calls.push_back(c);
  return ncclSuccess;
}

ncclResult_t make(Call c, const void* send, void* recv, cudaStream_t stream) {
  note_call(c.card.name);
  if (send == recv) note_call((std::string(c.card.name) + " in place").c_str());
  if (stream && reinterpret_cast<CUstream>(stream)->urgent)
    note_call((std::string(c.card.name) + " urgent").c_str());
  if (const ncclResult_t r = post(c, send, recv, stream)) return r;
  return group.depth > 0 ? ncclSuccess : launch_all(c.message);
}

Call collective(ncclComm* comm, const Card& c, uint64_t send_elements, uint64_t recv_elements) {
  const uint64_t unit = unit_of(static_cast<ncclDataType_t>(c.dtype));
  return {
      comm, c,      false, false, 0, nullptr, nullptr, send_elements * unit, recv_elements * unit,
      unit, nullptr};
}

std::string hex(const char* bytes, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += "0123456789abcdef"[bytes[i] & 15];
  return text;
}

// From a thread of the library.
template <class T>
void write_late(T& place, T value) {
  std::atomic_ref<T>(place).store(value);
}

// A communicator meets its peers beside the caller.
ncclResult_t form(ncclComm* comm) {
  return comm->take_time([comm] {
    comm->clique =
        std::make_unique<Clique>(comm->name, comm->rank, comm->ranks, comm->device, comm->stop);
    if (!comm->clique->complete()) return ncclInternalError;
    if (const std::string twice = comm->clique->shared_device(); !twice.empty()) {
      set_last_error(twice);
      return ncclInvalidUsage;
    }
    if (comm->clique->spans_hosts() && !place().unreachable.empty()) {
      set_last_error(place().unreachable);
      return ncclSystemError;
    }
    comm->state = ncclComm::usable;
    return ncclSuccess;
  });
}

void say_seed(int rank) {
  if (rank == 0) fprintf(stderr, "fake NCCL: seed %llu\n", static_cast<unsigned long long>(seed()));
}

}  // namespace

[[gnu::constructor]] static void watch_driver() { before_question = need_no_open_group; }

void set_last_error(const std::string& text) { last_error() = text; }

void need_no_open_group(const char* who) {
  if (group.depth > 0)
    misuse("missing group end", std::string(who) + " with a group begun and " +
                                    std::to_string(group.calls.size()) + " calls in it");
}

}  // namespace fake

using namespace fake;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* named = std::getenv("FAKE_NCCL_VERSION");
  *version = named ? std::atoi(named) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  place();
  std::random_device random;
  for (char& byte : id->internal) byte = static_cast<char>(random());
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  static const char* const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return result >= 0 && result < 8 ? texts[result] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return last_error().c_str(); }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->magic != 0xcafebeef || config->size != sizeof *config) return ncclInvalidArgument;
  place();
  say_seed(rank);
  *comm = new ncclComm(hex(id.internal, 32), rank, ranks, config->blocking != 0);
  return form(*comm);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           ncclConfig_t* config) {
  const Entry entry(comm, "ncclCommSplit");
  need_no_open_group("ncclCommSplit");
  Card mine = card("ncclCommSplit", ncclInt8, 0, 0, 0);
  mine.color = color, mine.key = key;
  const std::string name =
      comm->name + "." + std::to_string(++comm->splits) + "." + std::to_string(color);
  ncclComm* part =
      color == NCCL_SPLIT_NOCOLOR ? nullptr : new ncclComm(name, 0, 0, config->blocking != 0);
  *made = nullptr;  // until all is done, however long that takes
  const auto meet = [comm, part, mine] {
    const std::vector<Card> all = comm->clique->agree(mine);
    if (all.empty()) return ncclInternalError;
    if (!part) return ncclSuccess;
    for (int r = 0; r < comm->ranks; ++r) {
      const Card& other = all[static_cast<size_t>(r)];
      if (other.color != mine.color) continue;
      ++part->ranks;
      part->rank += other.key < mine.key || (other.key == mine.key && r < comm->rank);
    }
    form(part);
    return ncclSuccess;
  };
  return comm->take_time(meet, [comm, made, part] {
    if (comm->result == ncclSuccess) write_late(*made, part);
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  const Entry entry(comm, "ncclCommGetAsyncError", Entry::any);
  need_no_open_group("ncclCommGetAsyncError");
  if (comm->postponed && --comm->polls == 0) comm->result = std::exchange(comm->postponed, {})();
  *result = static_cast<ncclResult_t>(comm->result.load());
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Entry entry(comm, "ncclCommFinalize");
  need_no_open_group("ncclCommFinalize");
  return comm->take_time([comm] {
    while (comm->done < comm->posted && !comm->stop) std::this_thread::yield();
    comm->state = ncclComm::finalized;
    return comm->clique->leave() ? ncclSuccess : ncclInternalError;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Entry entry(comm, "ncclCommDestroy", Entry::any);
  need_no_open_group("ncclCommDestroy");
  if (comm->state != ncclComm::finalized && comm->state != ncclComm::revoked)
    misuse("destroyed without being finalized", "rank " + std::to_string(comm->rank));
  if (comm->result == ncclInProgress) misuse("call before the last one is done", "ncclCommDestroy");
  comm->end(ncclComm::destroyed);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Entry entry(comm, "ncclCommAbort", Entry::any);
  comm->stop = true;
  if (comm->held) ++comm->done;  // it will never be posted
  comm->held = false;
  comm->postponed = nullptr;
  comm->end(ncclComm::aborted);
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  const Entry entry(comm, "ncclCommRevoke", Entry::any);
  if (flags != NCCL_REVOKE_DEFAULT) return ncclInvalidArgument;
  if (comm->result == ncclInProgress) return ncclInvalidArgument;
  if (comm->state != ncclComm::usable) return ncclInvalidUsage;
  comm->stop = true;
  comm->postponed = nullptr;  // the error of a launch that has failed
  comm->rest();
  comm->state = ncclComm::revoked;
  return comm->take_time([] { return ncclSuccess; });
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) misuse("group end without a begin", "ncclGroupEnd");
  return --group.depth > 0 ? ncclSuccess : launch_all(false);
}

ncclResult_t ncclAllReduce(const void* send, void* recv, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return make(collective(comm, card("ncclAllReduce", type, op, -1, n), n, n), send, recv, stream);
}

ncclResult_t ncclReduce(const void* send, void* recv, size_t n, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  ncclComm::check_known(comm, "ncclReduce");
  return make(
      collective(comm, card("ncclReduce", type, op, root, n), n, comm->rank == root ? n : 0), send,
      recv, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* recv, size_t n, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  ncclComm::check_known(comm, "ncclBroadcast");
  return make(
      collective(comm, card("ncclBroadcast", type, 0, root, n), comm->rank == root ? n : 0, n),
      send, recv, stream);
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t n, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  ncclComm::check_known(comm, "ncclReduceScatter");
  return make(collective(comm, card("ncclReduceScatter", type, op, -1, n), n * comm->ranks, n),
              send, recv, stream);
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t n, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  ncclComm::check_known(comm, "ncclAllGather");
  return make(collective(comm, card("ncclAllGather", type, 0, -1, n), n, n * comm->ranks), send,
              recv, stream);
}

ncclResult_t ncclSend(const void* send, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const uint64_t bytes = n * unit_of(type);
  return make({comm, card("ncclSend", type, 0, -1, n), true, true, peer, nullptr, nullptr, bytes, 0,
               1, nullptr},
              send, nullptr, stream);
}

ncclResult_t ncclRecv(void* recv, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  const uint64_t bytes = n * unit_of(type);
  return make({comm, card("ncclRecv", type, 0, -1, n), true, false, peer, nullptr, nullptr, 0,
               bytes, 1, nullptr},
              nullptr, recv, stream);
}

ncclResult_t ncclMemAlloc(void** place, size_t bytes) {
  *place = reinterpret_cast<void*>(memory::allocate(bytes, true));
  return *place ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* place) {
  memory::release(reinterpret_cast<uintptr_t>(place), true);
  return ncclSuccess;
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* place, size_t bytes,
                                    ncclWindow_t* window, int flags) {
  const Entry entry(comm, "ncclCommWindowRegister");
  if (!memory::is_nccl(place, bytes))
    misuse("window on other memory", "it must come from ncclMemAlloc");
  *window = nullptr;
  if (std::getenv("FAKE_NCCL_NO_WINDOWS")) return ncclSuccess;  // as where GPUs do not reach others
  memory::add_window(place, 1);
  const auto made = reinterpret_cast<ncclWindow_t>(new char);
  comm->windows[made] = place;
  const Card mine = card("ncclCommWindowRegister", ncclInt8, flags, -1, bytes);
  return comm->take_time([comm, mine, window, made] {
    if (comm->clique->agree(mine).empty()) return ncclInternalError;
    write_late(*window, made);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  const Entry entry(comm, "ncclCommWindowDeregister");
  auto at = comm->windows.find(window);
  if (at == comm->windows.end())
    misuse("window that is not registered", "rank " + std::to_string(comm->rank));
  memory::add_window(at->second, -1);
  comm->windows.erase(at);
  return ncclSuccess;
}

}  // extern "C"
