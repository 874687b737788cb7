// SPDX-License-Identifier: Apache-2.0
//
// The plugin "strict": the strict device, and the reference's kernels on it. STRICT_WITHOUT names
// what it goes without: a function of one of its tables, or a field of orr_support.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "machine.h"
#include "table.h"

namespace strict {
namespace {

// What prepare makes, under the name of an orr_kernel: the reference has the struct of that name.
struct Kernel {
  orr_kernel* inner;
  int n_in, n_out;
  std::string name;  // where, for errors that come late
};

bool without(std::string_view name) {
  const char* named = std::getenv("STRICT_WITHOUT");
  return named && named == name;
}

template <class Body>
orr_status* locked(Body&& body) {
  return orr::guard([&] {
    const Machine::Lock lock = Machine::get().lock();
    body(Machine::get());
  });
}

orr_status* facts(void*, orr_device_facts* out) {
  *out = {};
  out->size = sizeof *out;
  orr::copy_text(out->name, "strict");
  orr::copy_text(out->model, "a device of tests");
  out->alignment = 256, out->outside = 3 << 20;
  return nullptr;
}

orr_status* open(void*, int32_t local_rank, int32_t local_size) {
  return locked([&](Machine& m) {
    if (local_rank < 0 || local_rank >= local_size) broken("opened as a rank that is not there");
    m.open();
  });
}

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  return locked([&](Machine& m) { *out = m.allocate(tier, bytes); });
}

void free_memory(void*, orr_memory* memory) {
  const Machine::Lock lock = Machine::get().lock();
  if (memory) Machine::get().free(memory);
}

orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from) {
  return locked([&](Machine& m) {
    if (to->bytes != from->bytes) broken("a copy between buffers of unequal bytes");
    const uint64_t to_handle = m.handle(*to), from_handle = m.handle(*from);
    Item item;
    for (uint64_t h : {to_handle, from_handle})
      if (h) item.memories.push_back(h);
    // Ordinary memory is named by a struct that need not last: its address is kept.
    char* to_host = to_handle ? nullptr : orr::data<char>(*to);
    char* from_host = from_handle ? nullptr : orr::data<char>(*from);
    item.run = [&m, to = *to, from = *from, to_handle, from_handle, to_host, from_host] {
      std::memmove(to_host ? to_host : m.address(to_handle, to),
                   from_host ? from_host : m.address(from_handle, from), to.bytes);
    };
    m.enqueue(stream, std::move(item));
  });
}

orr_status* stream_create(void*, orr_stream** out) {
  return locked([&](Machine& m) { *out = m.make_stream(); });
}

void stream_destroy(void*, orr_stream* stream) {
  const Machine::Lock lock = Machine::get().lock();
  Machine::get().destroy(stream);
}

orr_status* event_create(void*, orr_event** out) {
  return locked([&](Machine&) { *out = new orr_event; });
}

void event_destroy(void*, orr_event* event) {
  const Machine::Lock lock = Machine::get().lock();
  Machine::get().forget(event);
  delete event;
}

orr_status* event_record(void*, orr_event* event, orr_stream* stream) {
  return locked([&](Machine& m) {
    Item item;
    item.record = event;
    m.enqueue(stream, std::move(item));
  });
}

orr_status* stream_wait(void*, orr_stream* stream, orr_event* event) {
  return locked([&](Machine& m) {
    Item item;
    item.wait = event;
    m.enqueue(stream, std::move(item));
  });
}

orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns) {
  return locked([&](Machine& m) {
    if (deadline_ns <= 0) broken("event_sync without a deadline");
    m.sync(*event);
  });
}

orr_status* capture_begin(void*, orr_stream* stream) {
  return locked([&](Machine& m) { m.begin(stream); });
}

orr_status* capture_end(void*, orr_stream* stream, orr_graph** out) {
  return locked([&](Machine& m) { *out = m.end(stream); });
}

orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream) {
  return locked([&](Machine& m) {
    if (graph->items.empty()) broken("a graph of nothing");
    ++m.counts.graphs;
    for (const Item& item : graph->items) m.enqueue(stream, item);
  });
}

void graph_destroy(void*, orr_graph* graph) { delete graph; }

const orr_device_api device_table = {sizeof(orr_device_api),
                                     nullptr,
                                     facts,
                                     allocate,
                                     free_memory,
                                     copy,
                                     stream_create,
                                     stream_destroy,
                                     event_create,
                                     event_destroy,
                                     event_record,
                                     stream_wait,
                                     event_sync,
                                     open,
                                     capture_begin,
                                     capture_end,
                                     graph_launch,
                                     graph_destroy,
                                     nullptr};

int32_t probe(void*, char* reason, uint32_t bytes) {
  const bool absent = std::getenv("STRICT_ABSENT");
  if (bytes) std::snprintf(reason, bytes, "%s", absent ? "no strict device here" : "");
  return !absent;
}

// Sums stored as something else than what they are of (ops.h, ANOTHER DTYPE) it leaves to the core.
bool is_sum_in_another_dtype(const orr_op& op) {
  const std::string_view kind = op.kind;
  const int summed = kind == "scatter_add";
  return (summed || kind == "matmul" || kind == "reduce" || kind == "norm_param_grad") &&
         op.in[summed].dtype != op.out[0].dtype;
}

// Attributes that it does not know come from newer hosts: one of those that kernels need not know.
bool is_newer(const orr_op& op) { return orr::attr(op, "numerics") != nullptr; }

void supports(void*, const orr_op* op, orr_support* out) {
  if (is_newer(*op)) return orr::copy_text(out->reason, "numerics is not known here");
  if (is_sum_in_another_dtype(*op))
    return orr::copy_text(out->reason, "sums in their own dtype only");
  reference::table().supports(nullptr, op, out);
  out->capturable = std::string_view(op->kind) != "scatter_add";  // something stands between graphs
  if (without("strided_in")) out->strided_in = 0;
  if (without("strided_out")) out->strided_out = 0;
  if (without("inplace")) out->inplace = 0;
  if (without("capturable")) out->capturable = 0;
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return reference::table().measure(nullptr, op, out);
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  orr_kernel* inner = nullptr;
  if (orr_status* status = reference::table().prepare(nullptr, op, &inner)) return status;
  *out = reinterpret_cast<orr_kernel*>(new Kernel{inner, op->n_in, op->n_out, op->where});
  return nullptr;
}

void release(void*, orr_kernel* given) {
  const auto* kernel = reinterpret_cast<Kernel*>(given);
  reference::table().release(nullptr, kernel->inner);
  delete kernel;
}

// Buffers of one launch as the reference takes them.
struct Launched {
  std::vector<orr_buffer> buffers;
  std::vector<uint64_t> handles;
  std::vector<orr_memory> views;
  bool has_workspace = false;

  void add(Machine& m, const orr_buffer& b) {
    if (b.memory && b.memory->tier != ORR_TIER_DEVICE) broken("a kernel on memory of the host");
    buffers.push_back(b), handles.push_back(m.handle(b));
  }
  void resolve(Machine& m) {
    views.resize(buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      views[i] = {sizeof(orr_memory),
                  ORR_TIER_HOST,
                  buffers[i].bytes,
                  m.address(handles[i], buffers[i]),
                  nullptr,
                  "host",
                  nullptr};
      buffers[i].memory = &views[i], buffers[i].offset = 0;
    }
  }
};

// Scratch does not survive: it is spoilt before and after.
void run(Machine& m, const Kernel& kernel, Launched call) {
  call.resolve(m);
  const orr_buffer* workspace = call.has_workspace ? &call.buffers.back() : nullptr;
  if (workspace) std::memset(orr::data<char>(*workspace), 0xa5, workspace->bytes);
  const orr_buffer *in = call.buffers.data(), *out = in + kernel.n_in;
  try {
    orr::check(reference::table().launch(kernel.inner, nullptr, in, out, workspace));
  } catch (const orr::Error& e) {
    throw orr::Error(e.code, kernel.name + e.what());
  }
  if (workspace) std::memset(orr::data<char>(*workspace), 0x5a, workspace->bytes);
}

orr_status* launch(orr_kernel* given, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer* workspace) {
  return locked([&](Machine& m) {
    const auto* kernel = reinterpret_cast<Kernel*>(given);
    Launched call;
    for (int i = 0; i < kernel->n_in; ++i) call.add(m, in[i]);
    for (int i = 0; i < kernel->n_out; ++i) call.add(m, out[i]);
    if (workspace) call.add(m, *workspace), call.has_workspace = true;
    ++m.counts.launches;
    Item item;
    item.memories = call.handles;
    item.run = [&m, kernel, call = std::move(call)] { run(m, *kernel, call); };
    m.enqueue(stream, std::move(item));
  });
}

const orr_kernel_api kernel_table = {sizeof(orr_kernel_api),
                                     nullptr,
                                     "strict",
                                     probe,
                                     supports,
                                     measure,
                                     prepare,
                                     release,
                                     launch,
                                     nullptr};

template <class Table>
Table limited(Table table) {
  const auto drop = [](auto& slot, std::string_view name) {
    if (without(name)) slot = nullptr;
  };
#define ORR_DROP(slot) drop(table.slot, #slot)
  if constexpr (std::is_same_v<Table, orr_kernel_api>) {
    ORR_DROP(probe), ORR_DROP(supports), ORR_DROP(measure), ORR_DROP(prepare), ORR_DROP(release);
    ORR_DROP(launch);
  } else {
    ORR_DROP(facts), ORR_DROP(allocate), ORR_DROP(free), ORR_DROP(copy), ORR_DROP(stream_create);
    ORR_DROP(stream_destroy), ORR_DROP(event_create), ORR_DROP(event_destroy);
    ORR_DROP(event_record), ORR_DROP(stream_wait), ORR_DROP(event_sync), ORR_DROP(open);
    ORR_DROP(capture_begin), ORR_DROP(capture_end), ORR_DROP(graph_launch);
    ORR_DROP(graph_destroy), ORR_DROP(stream_create_urgent);
  }
#undef ORR_DROP
  return table;
}

const void* get_table(void*, const char* id, uint32_t version) {
  static const orr_kernel_api kernels = limited(kernel_table);
  static const orr_device_api device = limited(device_table);
  if (version != 1) return nullptr;
  if (std::string_view(id) == "kernel") return &kernels;
  return std::string_view(id) == "device" ? &device : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof(*out), nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace
}  // namespace strict

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_DEVICE, "strict", "1.0.0",
           "A device of tests that forgives nothing", strict::entry, 2,
           {{"kernel", 1, 1}, {"device", 1, 1}})
