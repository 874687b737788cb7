// SPDX-License-Identifier: Apache-2.0
//
// How a kernel plugin is called, whatever the op: structs of other hosts, other threads, many
// steps.
#include <algorithm>
#include <memory>
#include <thread>

#include "base/error.h"
#include "conformance/growth.h"
#include "conformance/kernel/buffer.h"
#include "conformance/kernel/cases.h"
#include "conformance/kernel_parts.h"
#include "conformance/loaded.h"

namespace orrery::judge {
using namespace kernel_suite;
namespace {

int64_t size_of(const Case& c) {
  int64_t n = 0;
  for (const auto* tensors : {&c.in, &c.out})
    for (const orr_tensor& t : *tensors) n += elements(t);
  return n;
}

// The smallest case of each op that the plugin takes.
std::vector<Case> one_of_each(const orr_kernel_api& api) {
  std::vector<Case> found;
  for (Case& c : all_cases()) {
    if (elements(c.out[0]) == 0 || !takes(api, c)) continue;
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const Case& f) { return f.kind == c.kind; });
    if (same == found.end())
      found.push_back(std::move(c));
    else if (size_of(c) < size_of(*same))
      *same = std::move(c);
  }
  return found;
}

// A case with its buffers, prepared.
class Prepared {
 public:
  Prepared(const orr_kernel_api& api, const Case& c, uint32_t seed)
      : api_(api), device_(Device::of(api)), op_(c) {
    const std::vector<Values> inputs = make_inputs(c, false, seed);
    for (size_t i = 0; i < c.in.size(); ++i) {
      buffers_.push_back(std::make_unique<Buffer>(device_, c.in[i], 0, true));
      buffers_.back()->write(inputs[i]);
      in_.push_back(buffers_.back()->view());
    }
    for (const orr_tensor& t : c.out) {
      buffers_.push_back(std::make_unique<Buffer>(device_, t, 0, false));
      out_.push_back(buffers_.back()->view());
    }
    orr_kernel_size size{};
    size.size = sizeof size;
    check(api.measure(api.self, &op_.op, &size));
    buffers_.push_back(std::make_unique<Buffer>(device_, size.workspace));
    workspace_ = buffers_.back()->view();
    workspace_bytes_ = size.workspace;
    for (const auto& buffer : buffers_) buffer->send();
    check(api.prepare(api.self, &op_.op, &kernel_));
  }
  ~Prepared() { api_.release(api_.self, kernel_); }
  void launch() {
    check(device_.run(false, [&] {
      return api_.launch(kernel_, device_.stream(), in_.data(), out_.data(),
                         workspace_bytes_ ? &workspace_ : nullptr);
    }));
  }

 private:
  const orr_kernel_api& api_;
  const Device& device_;
  AbiOp op_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<orr_buffer> in_, out_;
  orr_buffer workspace_{};
  uint64_t workspace_bytes_ = 0;
  orr_kernel* kernel_ = nullptr;
};

void structs_of(const orr_kernel_api& api, const Case& c, Fit fit) {
  AbiOp plain(c);
  Guarded<orr_expr> expr(plain.expr, fit);
  if (plain.op.expr) plain.op.expr = expr.get();
  Guarded<orr_op> op(plain.op, fit);
  Guarded<orr_support> support({}, fit);
  Guarded<orr_kernel_size> size({}, fit);
  api.supports(api.self, op.get(), support.get());
  check(api.measure(api.self, op.get(), size.get()));
  orr_kernel* kernel = nullptr;
  check(api.prepare(api.self, op.get(), &kernel));
  api.release(api.self, kernel);
  if (support->score <= 0)
    throw Fault("types.h: structs carry their size",
                c.name() + ": the same answer whatever their size", "score 0 under another size");
  if (!support.tail_intact() || !size.tail_intact())
    throw Fault("types.h: structs carry their size",
                c.name() + ": nothing written beyond what the plugin knows",
                "bytes of a newer host's were overwritten");
}

// Kernels are prepared on an open device: the plugin's own, or another's on which it rides.
void open_device(const Loaded& plugin, const orr_kernel_api& kernel) {
  if (std::string(kernel.device) == "host") return;
  const void* own = plugin.get("device", 1);
  if (!own) return void(Device::of(kernel));
  const std::unique_ptr<orr_device_api> device =
      complete_table<orr_device_api>(own, "the device on trial");
  check(device->open(device->self, 0, 1), fmt::format("device '{}'", kernel.device));
}

void structs(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const orr_kernel_api& api = plugin.table<orr_kernel_api>(ORR_KIND_KERNEL);
  char reason[96] = "";
  if (api.probe(api.self, reason, sizeof reason) <= 0)
    throw Skip(fmt::format("it does not work here: {}", reason));
  open_device(plugin, api);
  for (const Case& c : one_of_each(api)) structs_of(api, c, fit);
}

void exact_structs(const Subject& subject) { structs(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { structs(subject, Fit::kLonger); }

// `launch` belongs to the device's thread, which is not the one that prepared.
void threads(const Subject& subject) {
  require_device(subject);
  const orr_kernel_api& api = kernel_of(subject);
  for (const Case& c : one_of_each(api)) {
    Prepared prepared(api, c, static_cast<uint32_t>(subject.seed));
    std::string error;
    std::thread([&] {
      try {
        prepared.launch();
      } catch (const Error& e) {
        error = e.what();
      }
    }).join();
    if (!error.empty())
      throw Fault("kernel.h: launch, [compute thread of the device]",
                  c.name() + ": a launch from another thread", error);
  }
}

void expect_no_growth(const std::string& contract, const std::string& what,
                      const std::function<void()>& round) {
  if (const std::string grown = growth(round); !grown.empty())
    throw Fault(contract, what + " that keep nothing", "each keeps " + grown);
}

void leaks(const Subject& subject) {
  require_device(subject);
  const orr_kernel_api& api = kernel_of(subject);
  for (const Case& c : one_of_each(api)) {
    {
      Prepared prepared(api, c, static_cast<uint32_t>(subject.seed));
      expect_no_growth("kernel.h: \"`launch` once per step\"", c.name() + ": launches",
                       [&] { prepared.launch(); });
    }
    AbiOp op(c);
    expect_no_growth("kernel.h: \"The caller owns the kernel until it calls `release`\"",
                     c.name() + ": prepared and released kernels", [&] {
                       orr_kernel* kernel = nullptr;
                       check(api.prepare(api.self, &op.op, &kernel));
                       api.release(api.self, kernel);
                     });
  }
}

}  // namespace

std::vector<Test> kernel_contract_tests() {
  return {{"kernel.exact_structs", 30, exact_structs},
          {"kernel.longer_structs", 30, longer_structs},
          {"kernel.threads", 30, threads},
          {"kernel.leaks", 120, leaks}};
}

}  // namespace orrery::judge
