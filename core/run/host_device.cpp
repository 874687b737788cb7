// SPDX-License-Identifier: Apache-2.0
//
// Host memory. Anonymous mappings are zeroed already. The threads that will use a large one touch
// its pages, which is several times faster than one thread and puts the pages near their users.
#include "run/host_device.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/machine.h"
#include "base/text.h"
#include "plugin/host.h"
#include "run/thread_pool.h"

namespace orrery {
namespace {

constexpr uint64_t huge_page = 2 << 20;
constexpr uint64_t page = 4096;

struct Allocation {
  orr_memory memory;
  void* mapping;
  uint64_t mapped;
};

template <class... Args>
orr_status* error(int code, fmt::format_string<Args...> text, Args&&... args) {
  return host_table().error(code, fmt::format(text, std::forward<Args>(args)...).c_str());
}

void touch(char* start, uint64_t bytes) {
  madvise(start, bytes, MADV_HUGEPAGE);  // may fail: huge pages may be turned off
  struct Range {
    volatile char* start;
    uint64_t bytes;
  } range{start, bytes};
  const int64_t pieces = int64_t((bytes + huge_page - 1) / huge_page);
  ThreadPool::get().run(
      pieces,
      [](void* arg, int64_t i) {
        const Range& r = *static_cast<Range*>(arg);
        const uint64_t end = std::min(r.bytes, uint64_t(i + 1) * huge_page);
        for (uint64_t at = uint64_t(i) * huge_page; at < end; at += page) r.start[at] = 0;
      },
      &range);
}

orr_status* facts(void*, orr_device_facts* out) {
  *out = {};
  out->size = sizeof *out;
  fmt::format_to_n(out->name, sizeof out->name - 1, "host");
  fmt::format_to_n(out->model, sizeof out->model - 1, "{}", cpu_model());
  out->memory = memory_total();
  out->alignment = 64;
  return nullptr;
}

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  if (tier != ORR_TIER_HOST)
    return error(ORR_INVALID, "the device 'host' has no memory of tier {}; ask for tier {}", tier,
                 int(ORR_TIER_HOST));
  const bool big = bytes >= huge_page;
  const uint64_t mapped = big ? bytes + huge_page : std::max(bytes, uint64_t(1));
  void* mapping = mapped < bytes ? MAP_FAILED
                                 : mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return error(ORR_FAILED,
                 "cannot allocate {} of host memory ({}); use a smaller batch or more ranks",
                 human_bytes(double(bytes)), memory_bound());
  auto address = reinterpret_cast<uintptr_t>(mapping);
  if (big) address = (address + huge_page - 1) / huge_page * huge_page;
  char* start = reinterpret_cast<char*>(address);
  if (big) touch(start, bytes);
  auto* made = new Allocation{{}, mapping, mapped};
  made->memory = {sizeof(orr_memory), tier, bytes, start, start, "host", made};
  *out = &made->memory;
  return nullptr;
}

void free_memory(void*, orr_memory* memory) {
  if (!memory) return;
  auto* made = static_cast<Allocation*>(memory->owner);
  munmap(made->mapping, made->mapped);
  delete made;
}

orr_status* copy(void*, orr_stream*, const orr_buffer* to, const orr_buffer* from) {
  if (to->bytes != from->bytes)
    return error(ORR_INVALID, "copy of {} bytes into a buffer of {}", from->bytes, to->bytes);
  std::memmove(orr_buffer_host(to), orr_buffer_host(from), from->bytes);
  return nullptr;
}

// There are no streams: work is done when its call returns, so NULL stands for every stream and
// event.
template <class T>
orr_status* create_none(void*, T** out) {
  *out = nullptr;
  return nullptr;
}

template <class T>
void destroy_none(void*, T*) {}

orr_status* record(void*, orr_event*, orr_stream*) { return nullptr; }
orr_status* wait(void*, orr_stream*, orr_event*) { return nullptr; }
orr_status* sync(void*, orr_event*, int64_t) { return nullptr; }

orr_status* open(void*, int32_t, int32_t) { return nullptr; }

const orr_device_api table = {
    sizeof(orr_device_api),
    nullptr,
    facts,
    allocate,
    free_memory,
    copy,
    create_none<orr_stream>,
    destroy_none<orr_stream>,
    create_none<orr_event>,
    destroy_none<orr_event>,
    record,
    wait,
    sync,
    open,
    nullptr,  // launches are not recorded
    nullptr,
    nullptr,
    nullptr,
    create_none<orr_stream>,
};

}  // namespace

const orr_device_api& host_device() { return table; }

}  // namespace orrery
