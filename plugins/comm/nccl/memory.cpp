// SPDX-License-Identifier: Apache-2.0
//
// Memory of the device that NCCL's transports reach in place: a symmetric window where the version
// has it, a registered buffer where it has only that.
#include <algorithm>

#include "comm.h"

namespace nccl {
namespace {

// What orr_memory.owner points to.
struct Region {
  void* window = nullptr;
  void* handle = nullptr;
};

}  // namespace

orr_memory* Comm::allocate(uint64_t bytes) {
  const Library& lib = library();
  if (!lib.memory_allocate || !lib.memory_free || !(lib.window_register || lib.buffer_register))
    throw orr::Error(ORR_UNIMPLEMENTED,
                     "NCCL " + lib.version + " registers no memory: 2.19 is the first that does");
  family_->check_alive();
  family_->device().enter();
  const uint64_t size = std::max<uint64_t>(NCCL_WIN_REQUIRED_ALIGNMENT, bytes);
  auto region = std::make_unique<Region>();
  auto memory = std::make_unique<orr_memory>();
  guarded([&] {
    void* place = nullptr;
    check_nccl(lib.memory_allocate(&place, size), "ncclMemAlloc");
    *memory = {sizeof(orr_memory), ORR_TIER_DEVICE, bytes, nullptr, place, "cuda", region.get()};
    const CUstream stream = family_->device().stream();
    check_cuda(lib.cuMemsetD8Async(address(place), 0, size, stream), "cuMemsetD8Async");
    Event zeroed;
    zeroed.record(stream);
    await(static_cast<int64_t>(size), [&] { return zeroed.done(); });
    if (lib.window_register)
      settle(lib.window_register(comm_, place, size, &region->window, NCCL_WIN_COLL_SYMMETRIC),
             "ncclCommWindowRegister");
    // Where the GPUs cannot reach each other's memory, that succeeds and gives no window.
    if (!region->window && lib.buffer_register)
      settle(lib.buffer_register(comm_, place, size, &region->handle), "ncclCommRegister");
  });
  region.release();
  return memory.release();
}

// A communicator that has ended has let go of its windows.
void Comm::free(orr_memory* memory) {
  if (!memory) return;
  const Library& lib = library();
  const std::unique_ptr<orr_memory> given(memory);
  const std::unique_ptr<Region> region(static_cast<Region*>(memory->owner));
  family_->device().enter();
  if (family_->failing()) halt();
  if (comm_) {
    guarded([&] {
      if (region->window)
        settle(lib.window_deregister(comm_, region->window), "ncclCommWindowDeregister");
      if (region->handle)
        settle(lib.buffer_deregister(comm_, region->handle), "ncclCommDeregister");
    });
  }
  check_nccl(lib.memory_free(memory->native), "ncclMemFree");
}

}  // namespace nccl
