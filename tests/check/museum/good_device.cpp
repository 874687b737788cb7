// SPDX-License-Identifier: Apache-2.0
//
// A device over host memory that nobody else may touch, and one kernel on it, the gather of f32
// rows. Its streams are lazy: nothing that was enqueued is done before somebody waits for an event
// behind it.
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace {

std::mutex lock;  // of everything below: streams are used from any thread

using Work = std::function<void()>;

struct Stream {
  std::deque<Work> waiting;
  size_t done = 0;    // pieces of work, since it was made
  std::string error;  // the first of its work, until an event_sync tells it

  size_t end() const { return done + waiting.size(); }
  void advance(size_t until) {
    while (done < until) {
      const Work next = std::move(waiting.front());
      waiting.pop_front();
      ++done;
      next();
    }
  }
};

// A place in a stream: done when the work before it is.
struct Event {
  Stream* stream = nullptr;
  size_t end = 0;
};

struct Graph {
  std::deque<Work> work;
};

Stream* stream_of(orr_stream* s) { return reinterpret_cast<Stream*>(s); }
Event* event_of(orr_event* e) { return reinterpret_cast<Event*>(e); }
Graph* graph_of(orr_graph* g) { return reinterpret_cast<Graph*>(g); }

char* address(const orr_buffer& b) { return static_cast<char*>(b.memory->native) + b.offset; }

void enqueue(orr_stream* stream, Work work) {
  stream_of(stream)->waiting.push_back(std::move(work));
}

orr_status* facts(void*, orr_device_facts* out) {
  orr::copy_text(out->name, DEVICE_NAME);
  orr::copy_text(out->model, "lazy streams over host memory");
  out->memory = 0, out->peak_flops = 0, out->bandwidth = 0, out->alignment = 0, out->outside = 0;
  return nullptr;
}

orr_status* open(void*, int32_t, int32_t) { return nullptr; }

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  return orr::guard([&] {
    if (tier != ORR_TIER_DEVICE && tier != ORR_TIER_PINNED)
      throw orr::Error(ORR_INVALID, "no memory of that tier here");
    if (bytes > uint64_t{1} << 40) throw orr::Error(ORR_FAILED, "no memory of that size here");
    auto bytes_of = std::make_unique<char[]>(bytes);
    auto memory = std::make_unique<orr_memory>();
    *memory = {
        sizeof(orr_memory), tier,     bytes,  tier == ORR_TIER_PINNED ? bytes_of.get() : nullptr,
        bytes_of.get(),     "museum", nullptr};
    bytes_of.release();
    *out = memory.release();
  });
}

void free_memory(void*, orr_memory* memory) {
  delete[] static_cast<char*>(memory->native);
  delete memory;
}

// A piece of memory, whoever made it: the host's has no native address of ours.
char* place(const orr_buffer& b) {
  return b.memory->host ? static_cast<char*>(orr_buffer_host(&b)) : address(b);
}

orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from) {
  return orr::guard([&] {
    const std::lock_guard hold(lock);
    enqueue(stream, [to = place(*to), from = place(*from), bytes = to->bytes] {
      std::memmove(to, from, bytes);
    });
  });
}

orr_status* stream_create(void*, orr_stream** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_stream*>(new Stream); });
}
void stream_destroy(void*, orr_stream* stream) {
  const std::lock_guard hold(lock);
  stream_of(stream)->advance(stream_of(stream)->end());
  delete stream_of(stream);
}
orr_status* event_create(void*, orr_event** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_event*>(new Event); });
}
void event_destroy(void*, orr_event* event) { delete event_of(event); }

orr_status* event_record(void*, orr_event* event, orr_stream* stream) {
  const std::lock_guard hold(lock);
  *event_of(event) = {stream_of(stream), stream_of(stream)->end()};
  return nullptr;
}

orr_status* stream_wait(void*, orr_stream* stream, orr_event* event) {
  return orr::guard([&] {
    const std::lock_guard hold(lock);
    const Event until = *event_of(event);
    if (until.stream) enqueue(stream, [until] { until.stream->advance(until.end); });
  });
}

orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns) {
  const auto begin = std::chrono::steady_clock::now();
  const std::lock_guard hold(lock);
  const Event until = *event_of(event);
  if (!until.stream) return nullptr;
  while (until.stream->done < until.end) {
    if (std::chrono::steady_clock::now() - begin > std::chrono::nanoseconds(deadline_ns))
      return orr::host->error(ORR_DEADLINE, "the event is not done in time");
    until.stream->advance(until.stream->done + 1);
  }
  if (until.stream->error.empty()) return nullptr;
  return orr::host->error(ORR_FAILED, std::exchange(until.stream->error, "").c_str());
}

// What waits is done, so that all that waits at the end was recorded.
orr_status* capture_begin(void*, orr_stream* stream) {
  const std::lock_guard hold(lock);
  stream_of(stream)->advance(stream_of(stream)->end());
  return nullptr;
}

orr_status* capture_end(void*, orr_stream* stream, orr_graph** out) {
  return orr::guard([&] {
    const std::lock_guard hold(lock);
    *out = reinterpret_cast<orr_graph*>(new Graph{std::exchange(stream_of(stream)->waiting, {})});
  });
}

orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream) {
  return orr::guard([&] {
    const std::lock_guard hold(lock);
    for (const Work& work : graph_of(graph)->work) enqueue(stream, work);
  });
}

void graph_destroy(void*, orr_graph* graph) { delete graph_of(graph); }

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

struct Kernel {
  int64_t table_rows, columns, rows;
  bool wide;  // i64 indices
  std::string where;
};

const Kernel& kernel_of(orr_kernel* kernel) { return *reinterpret_cast<Kernel*>(kernel); }

const char* why_not(const orr_op& op) {
  if (std::string_view(op.kind) != "gather") return "only gather is here";
  if (op.in[0].dtype != ORR_F32 || op.out[0].dtype != ORR_F32) return "only f32 is here";
  if (op.in[1].dtype != ORR_I32 && op.in[1].dtype != ORR_I64) return "an index is i32 or i64";
  return nullptr;
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  if (bytes > 0) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  const char* reason = why_not(*op);
  out->score = reason ? 0 : 60;
  orr::copy_text(out->reason, reason ? reason : "");
  orr::copy_text(out->numerics, "copies");
  out->strided_in = out->strided_out = 0;
  out->inplace = 0, out->capturable = 1;
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    *out = reinterpret_cast<orr_kernel*>(new Kernel{op->in[0].dims[0], op->in[0].dims[1],
                                                    op->in[1].dims[0], op->in[1].dtype == ORR_I64,
                                                    op->where});
  });
}

void release(void*, orr_kernel* kernel) { delete &kernel_of(kernel); }

std::string gather(const Kernel& k, const float* table, const char* index, float* y) {
  for (int64_t r = 0; r < k.rows; ++r) {
    int32_t narrow;
    int64_t at;
    if (k.wide) std::memcpy(&at, index + 8 * r, 8);
    if (!k.wide) std::memcpy(&narrow, index + 4 * r, 4), at = narrow;
    if (at < 0 || at >= k.table_rows)
      return k.where + ": gather: index " + std::to_string(at) + " in row " + std::to_string(r) +
             " is outside the table";
    std::memcpy(y + r * k.columns, table + at * k.columns, static_cast<size_t>(k.columns) * 4);
  }
  return "";
}

// Its errors are the stream's: nobody has read the indices yet.
orr_status* launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer*) {
  return orr::guard([&] {
    const std::lock_guard hold(lock);
    enqueue(stream, [=, s = stream_of(stream), &k = kernel_of(kernel), table = address(in[0]),
                     index = address(in[1]), y = address(out[0])] {
      const std::string error =
          gather(k, reinterpret_cast<float*>(table), index, reinterpret_cast<float*>(y));
      if (s->error.empty()) s->error = error;
    });
  });
}

const orr_kernel_api table = {sizeof(orr_kernel_api),
                              nullptr,
                              DEVICE_NAME,
                              probe,
                              supports,
                              measure,
                              prepare,
                              release,
                              launch,
                              nullptr};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    if (version != 1) return nullptr;
    if (std::string_view(id) == "device") return &device_table;
    return std::string_view(id) == "kernel" ? &table : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL | ORR_KIND_DEVICE, DEVICE_NAME, "0.1.0",
           "A device of lazy streams, and gather on it", entry, 2,
           {{"kernel", 1, 1}, {"device", 1, 1}})
