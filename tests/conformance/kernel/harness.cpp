// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/harness.h"

#include <memory>
#include <random>

#include "conformance/kernel/buffer.h"
#include "lower/kernel_choice.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace kernel_suite {

std::string Case::name() const {
  std::string all = kind + "_" + dtype_name(in.empty() ? out[0].dtype : in[0].dtype) + "_" + note;
  for (char& c : all)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return all;
}

int64_t Case::attr(const std::string& name, int64_t fallback) const {
  for (const Attr& a : attrs)
    if (a.name == name) return a.i;
  return fallback;
}

double Case::real_attr(const std::string& name, double fallback) const {
  for (const Attr& a : attrs)
    if (a.name == name) return a.f;
  return fallback;
}

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"?",   "f32", "f64",  "bf16",    "f16",    "i32",
                                      "i64", "u8",  "bool", "f8_e4m3", "f8_e5m2"};
  return names[dtype];
}

bool is_real(int32_t dtype) {
  return (dtype >= ORR_F32 && dtype <= ORR_F16) || dtype == ORR_F8_E4M3 || dtype == ORR_F8_E5M2;
}

orr_tensor strided(int32_t dtype, std::vector<int64_t> dims, std::vector<int64_t> strides) {
  orr_tensor t{};
  t.dtype = dtype;
  t.rank = int32_t(dims.size());
  std::copy(dims.begin(), dims.end(), t.dims);
  std::copy(strides.begin(), strides.end(), t.strides);
  return t;
}

orr_tensor tensor(int32_t dtype, std::vector<int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0; step *= dims[d]) strides[d] = step;
  return strided(dtype, dims, strides);
}

int64_t elements(const orr_tensor& t) {
  int64_t n = 1;
  for (int d = 0; d < t.rank; ++d) n *= t.dims[d];
  return n;
}

namespace {

double draw(const Fill& fill, const orr_tensor& t, bool exact, std::mt19937& random) {
  auto integer_in = [&](int64_t lo, int64_t hi) {
    return double(std::uniform_int_distribution<int64_t>(lo, hi)(random));
  };
  if (t.dtype == ORR_BOOL) return integer_in(0, 1);
  if (fill.kind == FillKind::kBelow) return integer_in(0, fill.limit - 1);
  if (t.dtype == ORR_U8) return integer_in(0, 4);
  if (fill.kind == FillKind::kIntegers || exact || !is_real(t.dtype)) return integer_in(-4, 4);
  if (fill.kind == FillKind::kPositive)
    return std::uniform_real_distribution<double>(0.5, 2)(random);
  return std::normal_distribution<double>()(random);
}

}  // namespace

std::vector<Values> make_inputs(const Case& c, bool exact, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Values> inputs;
  for (size_t i = 0; i < c.in.size(); ++i) {
    Fill fill = i < c.fills.size() ? c.fills[i] : Fill{};
    if (fill.kind == FillKind::kBelowExtent) {
      const size_t t = fill.tensor;
      fill = below((t < c.in.size() ? c.in[t] : c.out[t - c.in.size()]).dims[fill.dim]);
    }
    Values v = fill.values;
    if (fill.kind != FillKind::kValues)
      for (int64_t n = elements(c.in[i]); n > 0; --n)
        v.push_back(draw(fill, c.in[i], exact, random));
    inputs.push_back(v);
  }
  if (c.derive) c.derive(c, inputs);
  for (size_t i = 0; i < c.in.size(); ++i) {  // as stored: rounded, and one value per element
    Buffer stored(Device::host(), c.in[i], 0, true);
    stored.write(inputs[i]);
    inputs[i] = stored.read();
  }
  return inputs;
}

AbiOp::AbiOp(const Case& c) {
  for (const Attr& a : c.attrs)
    attrs.push_back(
        {a.name.c_str(), a.type, int32_t(a.list.size()), a.i, a.f, a.text.c_str(), a.list.data()});
  expr = {sizeof(orr_expr), int32_t(c.instrs.size()), int32_t(c.stored.size()), 0,
          c.instrs.data(),  c.stored.data()};
  op = {sizeof(orr_op),
        int32_t(c.in.size()),
        int32_t(c.out.size()),
        int32_t(attrs.size()),
        c.kind.c_str(),
        c.in.data(),
        c.out.data(),
        attrs.data(),
        c.instrs.empty() ? nullptr : &expr,
        where,
        nullptr};
}

namespace {

using Buffers = std::vector<std::unique_ptr<Buffer>>;

std::vector<orr_buffer> views(const Buffers& buffers) {
  std::vector<orr_buffer> all;
  for (const auto& b : buffers) all.push_back(b->view());
  return all;
}

// Launches on prepared buffers; returns the message of an error, at once or late, or "".
std::string launch(const orr_kernel_api& api, const orr_op& op, const std::vector<orr_buffer>& in,
                   const std::vector<orr_buffer>& out, bool recorded, RunResult& result) {
  const Device& device = Device::of(api);
  orr_kernel_size size{};
  size.size = sizeof size;
  orrery::check(api.measure(api.self, &op, &size));
  orr_kernel* kernel = nullptr;
  orrery::check(api.prepare(api.self, &op, &kernel));
  Buffer workspace(device, size.workspace);
  workspace.send();
  orr_buffer view = workspace.view();
  bool accepted = false;
  orr_status* status = device.run(recorded, [&] {
    orr_status* at_once = api.launch(kernel, device.stream(), in.data(), out.data(),
                                     size.workspace ? &view : nullptr);
    accepted = !at_once;
    return at_once;
  });
  result.late = status && accepted;
  api.release(api.self, kernel);
  workspace.fetch();
  if (!workspace.intact()) result.damage += "bytes beside the workspace were written; ";
  std::string message = status ? orrery::host_table().error_message(status) : "";
  orrery::host_table().error_release(status);
  return message;
}

}  // namespace

namespace {

bool is_contiguous(const orr_tensor& t) {
  int64_t step = 1;
  for (int d = t.rank; d-- > 0; step *= t.dims[d])
    if (t.dims[d] != 1 && t.strides[d] != step) return false;
  return true;
}

// As the core asks: an input whose strides the kernel does not take is copied without gaps.
Case packed(Case c, const orr_support& support) {
  for (size_t i = 0; i < c.in.size(); ++i)
    if (orr_tensor& t = c.in[i];
        !is_contiguous(t) && !(support.strided_in >> std::min(i, size_t{31}) & 1))
      t = tensor(t.dtype, {t.dims, t.dims + t.rank});
  return c;
}

}  // namespace

orr_support ask(const orr_kernel_api& api, const Case& c) {
  return orrery::answer_of(api, AbiOp(c).op);
}

RunResult run(const std::string& plugin, const Case& as_it_is, const std::vector<Values>& inputs,
              const RunOptions& options) {
  const orr_kernel_api& api = orrery::Registry::get().kernel(plugin);
  RunResult result;
  result.support = ask(api, as_it_is);
  const Case c = packed(as_it_is, result.support);
  if (result.support.score > 0) result.support = ask(api, c);
  if (result.support.score == 0) {
    result.unsupported = result.support.reason[0] ? result.support.reason : "no reason given";
    return result;
  }
  const AbiOp op(c);
  const Device& device = Device::of(api);
  Buffers in, out;
  for (size_t i = 0; i < c.in.size(); ++i) {
    in.push_back(std::make_unique<Buffer>(device, c.in[i], options.misalign, true));
    in.back()->write(inputs[i]);
  }
  for (const orr_tensor& t : c.out)
    out.push_back(std::make_unique<Buffer>(device, t, options.misalign, false));
  if (options.inplace) std::swap(out[0], in[size_t(options.inplace - 1)]);
  std::vector<orr_buffer> in_views = views(in), out_views = views(out);
  if (options.inplace) in_views[size_t(options.inplace - 1)] = out_views[0];
  const bool recorded = options.recorded && device.records() && result.support.capturable;
  for (const Buffers* all : {&in, &out})
    for (const auto& buffer : *all) buffer->send();
  result.error = launch(api, op.op, in_views, out_views, recorded, result);
  for (const Buffers* all : {&in, &out})
    for (const auto& buffer : *all) buffer->fetch();
  for (size_t i = 0; i < in.size(); ++i)
    if (int(i) + 1 != options.inplace && in[i]->read() != inputs[i] && inputs[i] == inputs[i])
      result.damage += "input " + std::to_string(i) + " was written; ";
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i]->intact())
      result.damage += "bytes beside output " + std::to_string(i) + " were written; ";
    result.values.push_back(out[i]->read());
    result.bits.push_back(out[i]->bits());
  }
  return result;
}

std::vector<std::string> host_plugins() {
  std::vector<std::string> names;
  for (const std::string& name : orrery::Registry::get().names(ORR_KIND_KERNEL)) {
    const orr_kernel_api& api = orrery::Registry::get().kernel(name);
    char reason[96] = "";
    if (std::string(api.device) == "host" && api.probe(api.self, reason, sizeof reason) > 0)
      names.push_back(name);
  }
  return names;
}

namespace {

orr_tensor shortened(const orr_tensor& t, int dim, int64_t n) {
  if (dim < 0) return t;
  std::vector<int64_t> dims(t.dims, t.dims + t.rank);
  dims[size_t(dim)] = n;
  return tensor(t.dtype, dims);
}

// Copies the elements (of `size` units each) whose index in `dim` lies in [first, first + n).
template <class V>
V cut(const orr_tensor& t, const V& v, int dim, int64_t first, int64_t n, int64_t size) {
  if (dim < 0) return v;
  int64_t inner = size, outer = 1;
  for (int d = 0; d < t.rank; ++d) (d < dim ? outer : inner) *= d == dim ? 1 : t.dims[d];
  V result;
  for (int64_t o = 0; o < outer; ++o) {
    auto begin = v.begin() + (o * t.dims[dim] + first) * inner;
    result.insert(result.end(), begin, begin + n * inner);
  }
  return result;
}

}  // namespace

Case part(const Case& c, const Axis& axis, int64_t n) {
  Case p = c;
  for (size_t i = 0; i < c.in.size(); ++i) p.in[i] = shortened(c.in[i], axis.in[i], n);
  for (size_t i = 0; i < c.out.size(); ++i) p.out[i] = shortened(c.out[i], axis.out[i], n);
  return p;
}

Values part(const orr_tensor& t, const Values& v, int dim, int64_t first, int64_t n) {
  return cut(t, v, dim, first, n, 1);
}

std::vector<uint8_t> part(const orr_tensor& t, const std::vector<uint8_t>& bits, int dim,
                          int64_t first, int64_t n) {
  return cut(t, bits, dim, first, n, orr_dtype_bytes(t.dtype));
}

}  // namespace kernel_suite
