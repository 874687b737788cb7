// SPDX-License-Identifier: Apache-2.0
//
// The plugin's launches and late errors without a driver: a Function is an emulated kernel, device
// memory is the host's, and a launch is done when it returns.
#include <stdexcept>

#include "direct.h"
#include "emulator/block.h"
#include "function.h"
#include "generated.h"
#include "late.h"

namespace orr_cuda {

namespace {

LateWord the_word;
std::string text_of_last;

}  // namespace

Function find_function(const std::string& name) {
  const emulator::Kernel* kernel = emulator::find(name);
  if (!kernel) throw std::runtime_error("no device function '" + name + "'");
  return reinterpret_cast<Function>(const_cast<emulator::Kernel*>(kernel));
}

void allow_shared(Function, unsigned) {}

Generated& Generated::of(const std::string&, const std::string&, bool) {
  throw std::runtime_error("no generated kernels here");
}
void Generated::add_op(const std::function<std::string()>&) {}
void Generated::enqueue(CUstream, SmallLaunch&, bool, void**) {}

void enqueue_packed(CUstream, Function function, Extent grid, Extent block, unsigned shared_bytes,
                    void** arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  emulator::run(*reinterpret_cast<const emulator::Kernel*>(function), {grid.x, grid.y, grid.z},
                {block.x, block.y, block.z}, shared_bytes, arguments);
}

LateSource::LateSource(const orr_op& op, const std::string& text) : id_(7) {
  text_of_last = op.kind + (": " + text);
}
LateSource::~LateSource() = default;
LateArgs LateSource::args() const { return {&the_word, id_}; }

void throw_late() {
  const LateWord report = the_word;
  the_word = {};
  if (report.state == 2 && report.op == 7) throw std::runtime_error(filled(text_of_last, report));
}

}  // namespace orr_cuda
