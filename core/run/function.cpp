// SPDX-License-Identifier: Apache-2.0
//
// Functions of tensors: no batch, no communication; every caller computes the whole.
#include "base/error.h"
#include "program/build.h"
#include "run/variant.h"

namespace orrery {
namespace {

class CompiledFunction : public Function {
 public:
  CompiledFunction(std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line)
      : body_(std::move(body)), line_(std::move(line)) {}

  std::vector<HostTensor> call(const std::vector<HostTensor>& inputs,
                               const std::map<std::string, double>& scalars) override {
    Variant& variant = variant_for(inputs);
    variant.set_scalars(scalars, ++calls_);
    variant.set_inputs(inputs);
    variant.run();
    return variant.fetch_tensors();
  }

 private:
  Variant& variant_for(const std::vector<HostTensor>& inputs) {
    std::string key;
    for (const HostTensor& t : inputs) key += to_string(t.type);
    auto& found = variants_[key];
    if (found) return *found;
    Blueprint b;
    b.program.set_site({"", line_});
    std::vector<ValueId> values;
    for (size_t i = 0; i < inputs.size(); ++i)
      values.push_back(b.program.input(std::to_string(i), inputs[i].type));
    {
      TraceScope scope(b.program, false);
      for (auto& [name, id] : body_(b.program, values)) b.program.output(name, own(b.program, id));
    }
    found = std::make_unique<Variant>(b, 0, Runtime::get());
    return *found;
  }

  // An output needs contiguous memory of its own: views and inputs are copied.
  static ValueId own(Program& p, ValueId id) { return p.pointwise(ORR_FN_INPUT, {id}); }

  std::function<Outputs(Program&, const std::vector<ValueId>&)> body_;
  std::string line_;
  std::map<std::string, std::unique_ptr<Variant>> variants_;
  int64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Function> Function::make(
    std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line) {
  return std::make_unique<CompiledFunction>(std::move(body), std::move(line));
}

}  // namespace orrery
