// SPDX-License-Identifier: Apache-2.0
//
// Modules and launches. An image of nvcc stands for the emulated kernels, all of them; one of the
// fake NVRTC for the library that it names. A launch copies its arguments, as the driver does, and
// turns each device address in them into that of the bytes behind it; those in the rows of a table
// that lies on the device itself, when it runs.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <memory>

#include "emulator/block.h"
#include "fake_nccl/driver.h"
#include "fake_nccl/memory.h"
#include "fake_nccl/misuse.h"
#include "function.h"

struct CUmod_st {
  void* library = nullptr;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

namespace fake {
namespace {

// Replaces the device address that lies at `at`, if it is one, by that of the bytes behind it.
char* translated(void* at) {
  void* word = nullptr;
  std::memcpy(&word, at, sizeof word);
  char* place = memory::look_behind(word, 1);
  if (place) std::memcpy(at, &place, sizeof place);
  return place;
}

// The table of a launch, if its kernel gets one, as it lies on the device now: a copy of it takes
// its place among the arguments.
struct Table {
  std::vector<uint64_t> words;
  std::vector<char*> places;  // what its addresses stand for
  void* copy = nullptr;

  Table(const CUfunc_st& function, void** arguments) {
    if (!function.row_words) return;
    const uint64_t* rows = *static_cast<uint64_t**>(arguments[0]);
    words.assign(rows, rows + *static_cast<unsigned*>(arguments[1]) * function.row_words);
    for (size_t i = 0; i < words.size(); ++i)
      if (i % function.row_words < function.row_addresses) places.push_back(translated(&words[i]));
    copy = words.data(), arguments[0] = &copy;
  }
  Table(const Table&) = delete;
};

std::unique_ptr<CUfunc_st> emulated(const char* name) {
  const emulator::Kernel* kernel = emulator::find(name);
  if (!kernel) return nullptr;
  auto function = std::make_unique<CUfunc_st>();
  function->name = name;
  function->sizes = {kernel->argument_bytes};
  function->run = [kernel](dim3 grid, dim3 block, size_t shared, void** arguments) {
    emulator::run(*kernel, grid, block, shared, arguments);
  };
  return function;
}

// Threads of a block run in random orders, so that a missing barrier shows.
const bool in_disorder = (emulator::set_order(1), true);

// A thread of a generated kernel with barriers; the first argument is the kernel.
void generated_thread(void** arguments) {
  const auto* kernel = static_cast<const CompiledKernel*>(arguments[0]);
  kernel->thread(emulator::block_index.x, emulator::self().index.x, arguments + 1);
}

// Runs such a kernel as fibers.
void run_fibers(const CompiledKernel& kernel, const std::string& name, dim3 grid, dim3 block,
                size_t shared, void** arguments) {
  std::vector<void*> all = {const_cast<CompiledKernel*>(&kernel)};
  all.insert(all.end(), arguments, arguments + kernel.arguments);
  emulator::run({name.c_str(), 1024, 0, generated_thread}, grid, block, shared, all.data());
}

std::unique_ptr<CUfunc_st> compiled(void* library, const char* name) {
  const auto* kernel = static_cast<const CompiledKernel*>(
      dlsym(library, (std::string("fake_kernel_") + name).c_str()));
  if (!kernel) return nullptr;
  auto function = std::make_unique<CUfunc_st>();
  function->name = name;
  function->sizes.assign(kernel->sizes, kernel->sizes + kernel->arguments);
  function->row_words = kernel->row_words, function->row_addresses = kernel->row_addresses;
  if (auto* block = static_cast<CompiledBlock*>(dlsym(library, "fake_block"))) {
    *block = {emulator::barrier, [] { return emulator::dynamic_shared; }};
    function->barriers = true;
  }
  function->run = [kernel, f = function.get()](dim3 grid, dim3 block, size_t shared,
                                               void** arguments) {
    Table table(*f, arguments);
    if (f->barriers)
      run_fibers(*kernel, f->name, grid, block, shared, arguments);
    else
      kernel->run(grid.x, block.x, arguments);
  };
  return function;
}

struct Arguments {
  std::vector<std::vector<char>> copies;
  std::vector<Range> ranges;  // the first byte behind each address: copies may not write there

  Arguments(const CUfunc_st& function, void** given) {
    for (size_t i = 0; i < function.sizes.size(); ++i) {
      const char* bytes = static_cast<const char*>(given[i]);
      copies.emplace_back(bytes, bytes + function.sizes[i]);
      for (size_t at = 0; at + sizeof(void*) <= copies[i].size(); at += sizeof(void*))
        translate(&copies[i][at]);
    }
    std::vector<void*> own = pointers();
    for (char* place : Table(function, own.data()).places) ranges.push_back({place, 1, false});
  }
  void translate(char* at) {
    if (char* place = translated(at)) ranges.push_back({place, 1, false});
  }
  std::vector<void*> pointers() {
    std::vector<void*> all;
    for (std::vector<char>& bytes : copies) all.push_back(bytes.data());
    return all;
  }
};

Stream::Operation operation(CUfunction function, dim3 grid, dim3 block, size_t shared,
                            void** arguments) {
  auto copies = std::make_shared<Arguments>(*function, arguments);
  return {function->name, copies->ranges, [=] {
            Arguments own = *copies;
            std::vector<void*> pointers = own.pointers();
            try {
              function->run(grid, block, shared, pointers.data());
            } catch (const std::exception& e) {
              misuse("kernel that breaks a rule", e.what());
            }
          }};
}

void check_launch(const CUfunc_st& function, dim3 grid, dim3 block, size_t shared) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0)
    misuse("launch that no device takes", function.name);
  if (shared > function.allowed_shared)
    misuse("more shared memory than was allowed",
           function.name + " asks for " + std::to_string(shared));
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (const CUresult r = enter_driver("cuModuleLoadData")) return r;
  forbid_in_capture("cuModuleLoadData");
  *module = new CUmod_st;
  const auto* text = static_cast<const char*>(image);
  const size_t length = std::strlen(compiled_magic);
  if (std::strncmp(text, compiled_magic, length) != 0) return CUDA_SUCCESS;
  (*module)->library = dlopen(text + length, RTLD_NOW | RTLD_LOCAL);
  return (*module)->library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (const CUresult r = enter_driver("cuModuleGetFunction")) return r;
  auto& kept = module->functions[name];
  if (!kept) kept = module->library ? compiled(module->library, name) : emulated(name);
  *function = kept.get();
  return kept ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    function->allowed_shared = static_cast<size_t>(value);
  return value <= 227 << 10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                        void** arguments, void**) {
  if (const CUresult r = enter_driver("cuLaunchKernel")) return r;
  const dim3 grid(gx, gy, gz), block(bx, by, bz);
  check_launch(*function, grid, block, shared);
  const Stream::Operation op = operation(function, grid, block, shared, arguments);
  stream_of(stream).enqueue(op.what, op.ranges, op.run);
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* to) {
  const dim3 grid(to->gridDimX, to->gridDimY, to->gridDimZ),
      block(to->blockDimX, to->blockDimY, to->blockDimZ);
  check_launch(*to->func, grid, block, to->sharedMemBytes);
  *reinterpret_cast<Stream::Operation*>(node) =
      operation(to->func, grid, block, to->sharedMemBytes, to->kernelParams);
  return enter_driver("cuGraphKernelNodeSetParams");
}

}  // extern "C"
