// SPDX-License-Identifier: Apache-2.0
//
// kernel/1: finds the family of an op, makes the kernel objects of its passes, enqueues them.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "faults.h"
#include "kernel.h"
#include "tables.h"

namespace ocl {
namespace {

const Family* const families[] = {&pointwise_family,      &matmul_family,
                                  &reduce_family,         &softmax_family,
                                  &softmax_grad_family,   &layernorm_family,
                                  &layernorm_grad_family, &norm_param_grad_family,
                                  &attention_family,      &attention_grad_family,
                                  &cross_entropy_family,  &cross_entropy_grad_family,
                                  &gather_family,         &scatter_add_family,
                                  &slice_at_family,       &update_slice_family,
                                  &iota_family,           &argmax_family,
                                  &categorical_family};

bool is_contiguous(const orr_tensor& t) {
  int64_t expected = 1;
  for (int d = t.rank - 1; d >= 0; --d) {
    if (t.dims[d] == 0) return true;
    if (t.dims[d] != 1 && t.strides[d] != expected) return false;
    expected *= t.dims[d];
  }
  return true;
}

const Family& checked_family(const orr_op& op) {
  const auto at = std::find_if(std::begin(families), std::end(families), [&](const Family* f) {
    return std::string_view(op.kind) == f->kind;
  });
  if (at == std::end(families)) throw Refused(std::string("no such op here: ") + op.kind);
  for (int i = 0; i < op.n_in + op.n_out; ++i) {
    const bool in = i < op.n_in;
    const uint32_t strided =
        (in ? (*at)->strided_in : (*at)->strided_out) >> std::min(in ? i : i - op.n_in, 31);
    require((strided & 1) || is_contiguous(tensor(op, i)),
            "tensor " + std::to_string(i) + " must be contiguous");
  }
  (*at)->check(op);
  return **at;
}

// A pass with its arguments but for the buffers.
struct Prepared {
  cl_kernel kernel = nullptr;
  cl_mem layout = nullptr;
  size_t items = 0;
  bool looks = false;  // at data that may be wrong, also where there is nothing to write
  std::vector<int> tensors;

  Prepared() = default;
  Prepared(Prepared&& other) noexcept
      : kernel(std::exchange(other.kernel, nullptr)),
        layout(std::exchange(other.layout, nullptr)),
        items(other.items),
        looks(other.looks),
        tensors(std::move(other.tensors)) {}
  ~Prepared() {
    if (kernel) clReleaseKernel(kernel);
    if (layout) clReleaseMemObject(layout);
  }
};

struct Kernel {
  int n_in;
  std::vector<Prepared> passes;
};

void set(cl_kernel kernel, cl_uint& at, const void* value, size_t bytes) {
  check(clSetKernelArg(kernel, at++, bytes, value), "clSetKernelArg");
}

Prepared prepare_pass(const Pass& pass, const char* where) {
  Prepared p;
  p.kernel = Machine::get().kernel(pass.source, pass.options, pass.name);
  p.items = static_cast<size_t>(pass.items), p.looks = !pass.fault.empty(),
  p.tensors = pass.tensors;
  cl_uint at = static_cast<cl_uint>(2 * pass.tensors.size());
  if (!pass.layout.empty()) {
    cl_int code;
    p.layout = clCreateBuffer(Machine::get().context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                              pass.layout.size() * sizeof(int64_t),
                              const_cast<int64_t*>(pass.layout.data()), &code);
    check(code, "clCreateBuffer");
    set(p.kernel, at, &p.layout, sizeof p.layout);
  }
  std::vector<int64_t> numbers = pass.numbers;
  if (!pass.fault.empty()) {
    const cl_mem record = fault_record();
    set(p.kernel, at, &record, sizeof record);
    numbers.push_back(add_fault((where ? where : "") + pass.fault));
  }
  numbers.push_back(pass.items);
  for (const int64_t& n : numbers) set(p.kernel, at, &n, sizeof n);
  return p;
}

void enqueue(const Prepared& p, cl_command_queue queue, int n_in, const orr_buffer* in,
             const orr_buffer* out) {
  if (p.items == 0 && !p.looks) return;
  cl_uint at = 0;
  for (int i : p.tensors) {
    const orr_buffer& b = i < n_in ? in[i] : out[i - n_in];
    if (!b.memory) return;  // an empty tensor
    const auto memory = static_cast<cl_mem>(b.memory->native);
    set(p.kernel, at, &memory, sizeof memory);
    set(p.kernel, at, &b.offset, sizeof b.offset);
  }
  // Groups of one size: drivers compile for each size that they meet.
  const size_t group = 64, all = (std::max<size_t>(p.items, 1) + group - 1) / group * group;
  check(clEnqueueNDRangeKernel(queue, p.kernel, 1, nullptr, &all, &group, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
}

int32_t probe(void*, char* reason, uint32_t bytes) {
  const bool here = !devices().empty();
  if (bytes)
    std::snprintf(reason, bytes, "%s",
                  here ? "" : "no OpenCL device here: install a driver, such as pocl-opencl-icd");
  return here ? 10 : 0;
}

void supports(void*, const orr_op* op, orr_support* out) {
  const uint32_t size = out->size;
  orr_support found{};
  found.size = size;
  try {
    const Family& f = checked_family(*op);
    found.score = 10;
    orr::copy_text(found.numerics, std::string("opencl.") + f.kind + ".1");
    found.strided_in = f.strided_in, found.strided_out = f.strided_out;
    found.inplace = f.inplace ? f.inplace(*op) : 0;
  } catch (const std::exception& e) {
    orr::copy_text(found.reason, e.what());
  }
  std::memcpy(out, &found, std::min<size_t>(size ? size : sizeof found, sizeof found));
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return orr::guard([&] {
    checked_family(*op);
    out->workspace = 0;
  });
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    auto made = std::make_unique<Kernel>();
    made->n_in = op->n_in;
    for (const Pass& pass : checked_family(*op).passes(*op))
      made->passes.push_back(prepare_pass(pass, op->where));
    *out = reinterpret_cast<orr_kernel*>(made.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Kernel*>(kernel); }

orr_status* launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer*) {
  return orr::guard([&] {
    const auto* k = reinterpret_cast<Kernel*>(kernel);
    for (const Prepared& p : k->passes)
      enqueue(p, reinterpret_cast<cl_command_queue>(stream), k->n_in, in, out);
  });
}

}  // namespace

const orr_kernel_api kernel_table = {sizeof(orr_kernel_api),
                                     nullptr,
                                     "opencl",
                                     probe,
                                     supports,
                                     measure,
                                     prepare,
                                     release,
                                     launch,
                                     nullptr};

const char* c_type(int32_t dtype) {
  switch (dtype) {
    case ORR_F32: return "float";
    case ORR_F64: require(known_facts().f64, "this device has no f64"); return "double";
    case ORR_I32: return "int";
    case ORR_I64: return "long";
    case ORR_U8:
    case ORR_BOOL: return "uchar";
    default: throw Refused("16-bit reals are not here");
  }
}

bool is_real(int32_t dtype) { return dtype == ORR_F32 || dtype == ORR_F64; }

std::string typed(int32_t dtype) { return std::string("-DT=") + c_type(dtype); }

void require_counts(const orr_op& op, int n_in, int n_out) {
  require(op.n_in == n_in && op.n_out == n_out,
          std::to_string(n_in) + " inputs and " + std::to_string(n_out) + " outputs are needed");
}

void require_real(const orr_op& op, std::initializer_list<int> which) {
  const int32_t dtype = tensor(op, *which.begin()).dtype;
  require(is_real(dtype), "only f32 and f64 are here");
  c_type(dtype);
  for (int i : which)
    require(tensor(op, i).dtype == dtype,
            "the dtype of tensor " + std::to_string(i) + " does not fit");
}

void require_index(const orr_tensor& t) {
  require(t.dtype == ORR_I32 || t.dtype == ORR_I64, "an index is i32 or i64");
}

void require_dims(const orr_tensor& t, std::initializer_list<int64_t> dims) {
  require(t.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), t.dims),
          "the shapes of the tensors do not fit");
}

std::vector<Node> nodes_of(const orr_op& op) {
  const int64_t lo = orr::attr_int(op, "leaf_lo", 0), hi = lo + orr::attr_int(op, "leaf_n", 1);
  std::vector<Node> nodes;
  for (int64_t at = lo; at < hi;) {
    const int64_t first = at, n = orr_tree_node(&at, hi, orr::attr_int(op, "leaf_total", 1));
    nodes.push_back({first - lo, n});
  }
  return nodes;
}

int64_t leaf_length(const orr_op& op, int64_t summed) {
  return summed / orr::attr_int(op, "leaf_n", 1);
}

void require_nodes(const orr_op& op, const orr_tensor& t, std::initializer_list<int64_t> dims,
                   int64_t summed) {
  const int64_t lo = orr::attr_int(op, "leaf_lo", 0), n = orr::attr_int(op, "leaf_n", 1),
                total = orr::attr_int(op, "leaf_total", 1);
  require(lo >= 0 && n >= 1 && lo + n <= total && summed % n == 0,
          "the leaves do not fit the summed dim");
  const int lead = t.rank - static_cast<int>(dims.size());
  int64_t nodes = 1;
  for (int d = 0; d < lead; ++d) nodes *= t.dims[d];
  require(lead >= 0 && std::equal(dims.begin(), dims.end(), t.dims + lead) &&
              (nodes == 1 || nodes == orr_tree_nodes(lo, lo + n, total)),
          "the shape of a sum is not [nodes, ..]");
}

}  // namespace ocl
