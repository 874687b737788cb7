// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <memory>

#include <orrery/sdk/plugin.hpp>

#include "sources.h"

namespace ocl {
namespace {

std::unique_ptr<Machine>& the_machine() {
  static auto* const machine =
      new std::unique_ptr<Machine>;  // never destroyed: drivers may be gone at exit
  return *machine;
}

template <class T>
T fact(cl_device_id device, cl_device_info which) {
  T value{};
  check(clGetDeviceInfo(device, which, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string build_log(cl_program program, cl_device_id device) {
  size_t bytes = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, 0);
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log;
}

}  // namespace

void check(cl_int code, const char* what) {
  if (code != CL_SUCCESS)
    throw orr::Error(ORR_FAILED,
                     std::string("opencl: ") + what + ": OpenCL error " + std::to_string(code));
}

std::vector<cl_device_id> devices() {
  cl_uint n = 0;
  if (clGetPlatformIDs(0, nullptr, &n) != CL_SUCCESS || n == 0) return {};
  std::vector<cl_platform_id> platforms(n);
  check(clGetPlatformIDs(n, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<cl_device_id> found;
  for (cl_device_type type : {cl_device_type(CL_DEVICE_TYPE_GPU),
                              cl_device_type(CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU)})
    for (cl_platform_id platform : platforms) {
      if (clGetDeviceIDs(platform, type, 0, nullptr, &n) != CL_SUCCESS || n == 0) continue;
      std::vector<cl_device_id> here(n);
      check(clGetDeviceIDs(platform, type, n, here.data(), nullptr), "clGetDeviceIDs");
      found.insert(found.end(), here.begin(), here.end());
    }
  return found;
}

Facts facts_of(cl_device_id device) {
  char name[128] = "";
  check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr), "clGetDeviceInfo");
  return {name, fact<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE),
          fact<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
          fact<cl_device_fp_config>(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0};
}

Facts known_facts() {
  if (Machine::is_open()) return Machine::get().facts();
  const std::vector<cl_device_id> here = devices();
  return here.empty() ? Facts{} : facts_of(here.front());
}

bool Machine::is_open() { return the_machine() != nullptr; }

Machine& Machine::get() {
  if (!the_machine()) throw orr::Error(ORR_INVALID, "opencl: the device has not been opened");
  return *the_machine();
}

void Machine::open(int32_t local_rank) {
  const std::vector<cl_device_id> here = devices();
  if (here.empty())
    throw orr::Error(ORR_UNAVAILABLE,
                     "no OpenCL device here: install a driver, such as pocl-opencl-icd");
  the_machine().reset(new Machine(here[static_cast<size_t>(local_rank) % here.size()]));
}

Machine::Machine(cl_device_id device) : device_(device), facts_(facts_of(device)) {
  cl_int code;
  context_ = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  own_ = make_queue();
}

cl_command_queue Machine::make_queue() const {
  cl_int code;
  cl_command_queue queue = clCreateCommandQueue(context_, device_, 0, &code);
  check(code, "clCreateCommandQueue");
  return queue;
}

cl_kernel Machine::kernel(const std::string& source, const std::string& options, const char* name) {
  cl_program& program = programs_[{source, options}];
  if (!program) program = build(source, options);
  cl_int code;
  cl_kernel made = clCreateKernel(program, name, &code);
  check(code, name);
  return made;
}

cl_program Machine::build(const std::string& source, const std::string& options) const {
  const char* texts[] = {prelude_cl, source.c_str()};
  cl_int code;
  cl_program program = clCreateProgramWithSource(context_, 2, texts, nullptr, &code);
  check(code, "clCreateProgramWithSource");
  const std::string all = "-cl-std=CL1.2 -w " + options + (facts_.f64 ? " -DHAS_F64" : "");
  if (clBuildProgram(program, 1, &device_, all.c_str(), nullptr, nullptr) != CL_SUCCESS)
    throw orr::Error(ORR_FAILED,
                     "opencl: a kernel does not compile: " + build_log(program, device_));
  return program;
}

}  // namespace ocl
