// @name@: a device, and the row softmax in f32 on it. The device is host memory that the host may
// not touch, and its streams do all work at once: put yours in place of both. See orrery/device.h
// for the calls of a device, orrery/kernel.h for those of kernels, orrery/ops.h for the op.
#include <orrery/ops.h>
#include <orrery/sdk/plugin.hpp>

#include <cmath>
#include <cstdlib>
#include <memory>

namespace {

// -- the device -----------------------------------------------------------------------------------

// An error of its work is told by the next event_sync behind it.
struct Stream {
  std::string error;
};

struct Event {
  Stream* stream = nullptr;
};

Stream* stream_of(orr_stream* s) { return reinterpret_cast<Stream*>(s); }
Event* event_of(orr_event* e) { return reinterpret_cast<Event*>(e); }

// Where a buffer of this device is; `host` is set for what the host may touch as well.
char* address(const orr_buffer& b) {
  return static_cast<char*>(b.memory->host ? b.memory->host : b.memory->native) + b.offset;
}

orr_status* facts(void*, orr_device_facts* out) {
  orr::copy_text(out->name, "@name@");
  orr::copy_text(out->model, "host memory under another name");
  return nullptr;
}

orr_status* open(void*, int32_t, int32_t) { return nullptr; }

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  return orr::guard([&] {
    if (tier != ORR_TIER_DEVICE && tier != ORR_TIER_PINNED)
      throw orr::Error(ORR_INVALID, "no memory of that tier here");
    void* place = std::calloc(bytes ? bytes : 1, 1);
    if (!place) throw orr::Error(ORR_FAILED, "no " + std::to_string(bytes) + " bytes of memory");
    auto memory = std::make_unique<orr_memory>();
    memory->size = sizeof(orr_memory), memory->tier = tier, memory->bytes = bytes;
    memory->native = place, memory->host = tier == ORR_TIER_PINNED ? place : nullptr;
    orr::copy_text(memory->native_kind, "@name@");
    *out = memory.release();
  });
}

void free_memory(void*, orr_memory* memory) {
  std::free(memory->native);
  delete memory;
}

orr_status* copy(void*, orr_stream*, const orr_buffer* to, const orr_buffer* from) {
  std::memmove(address(*to), address(*from), to->bytes);
  return nullptr;
}

orr_status* stream_create(void*, orr_stream** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_stream*>(new Stream); });
}
void stream_destroy(void*, orr_stream* stream) { delete stream_of(stream); }

orr_status* event_create(void*, orr_event** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_event*>(new Event); });
}
void event_destroy(void*, orr_event* event) { delete event_of(event); }

orr_status* event_record(void*, orr_event* event, orr_stream* stream) {
  event_of(event)->stream = stream_of(stream);
  return nullptr;
}

// What an event stands for is done already.
orr_status* stream_wait(void*, orr_stream*, orr_event*) { return nullptr; }

orr_status* event_sync(void*, orr_event* event, int64_t) {
  Stream* stream = event_of(event)->stream;
  if (!stream || stream->error.empty()) return nullptr;
  return orr::host->error(ORR_FAILED, std::exchange(stream->error, "").c_str());
}

constexpr orr_device_api device_table() {
  orr_device_api t{};
  t.size = sizeof t, t.facts = facts, t.open = open;
  t.allocate = allocate, t.free = free_memory, t.copy = copy;
  t.stream_create = stream_create, t.stream_destroy = stream_destroy, t.stream_wait = stream_wait;
  t.event_create = event_create, t.event_destroy = event_destroy;
  t.event_record = event_record, t.event_sync = event_sync;
  return t;
}
constexpr orr_device_api device = device_table();

// -- a kernel on it -------------------------------------------------------------------------------

struct Kernel {
  int64_t rows, columns;
};

std::string why_not(const orr_op& op) {
  if (std::string_view(op.kind) != "softmax") return "only softmax is here";
  if (op.n_in != 1 || op.n_out != 1) return "softmax has one input and one output";
  for (const orr_tensor* t : {op.in, op.out}) {
    if (t->dtype != ORR_F32) return "only f32 is here";
    if (t->rank != 2 || t->dims[0] != op.in->dims[0] || t->dims[1] != op.in->dims[1])
      return "shapes differ";
  }
  return "";
}

int32_t probe(void*, char* reason, uint32_t reason_bytes) {
  if (reason_bytes > 0) reason[0] = 0;
  return 1;
}

void supports(void*, const orr_op* op, orr_support* out) {
  const std::string reason = why_not(*op);
  out->score = reason.empty() ? 110 : 0;  // more than the 100 of Orrery's own kernels
  orr::copy_text(out->reason, reason);
  // Equal ids promise equal bits: name whatever decides about yours.
  orr::copy_text(out->numerics, "@name@ softmax: sum in row order");
  out->strided_in = out->strided_out = 0;
  out->inplace = 1;
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  return orr::guard([&] { out->workspace = 0; });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    auto kernel = std::make_unique<Kernel>(Kernel{op->in->dims[0], op->in->dims[1]});
    *out = reinterpret_cast<orr_kernel*>(kernel.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

void softmax_row(const float* x, float* y, int64_t n) {
  float top = x[0], sum = 0;
  for (int64_t i = 1; i < n; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - top);
  const float scale = 1 / sum;
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

orr_status* launch(orr_kernel* handle, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer*) {
  return orr::guard([&] {
    const auto& kernel = *reinterpret_cast<const Kernel*>(handle);
    const auto* x = reinterpret_cast<const float*>(address(in[0]));
    auto* y = reinterpret_cast<float*>(address(out[0]));
    orr::parallel_for(kernel.rows, [&](int64_t r) {
      softmax_row(x + r * kernel.columns, y + r * kernel.columns, kernel.columns);
    });
  });
}

const orr_kernel_api kernels = {sizeof(orr_kernel_api),
                                nullptr,
                                "@name@",
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
    if (std::string_view(id) == "device") return &device;
    return std::string_view(id) == "kernel" ? &kernels : nullptr;
  };
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_DEVICE | ORR_KIND_KERNEL, "@name@", "0.1.0",
           "A device, and a row softmax on it", entry, 2, {{"device", 1, 1}, {"kernel", 1, 1}})
