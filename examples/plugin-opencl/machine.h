// SPDX-License-Identifier: Apache-2.0
//
// The OpenCL device of this process, its context and its compiled programs. Created by `open`; what
// planning asks needs no context.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ocl {

// Throws orr::Error "<what>: OpenCL error -5" unless code is CL_SUCCESS.
void check(cl_int code, const char* what);

// Of all platforms, GPUs first. Empty: there is none.
std::vector<cl_device_id> devices();

struct Facts {
  std::string name;
  uint64_t memory = 0, largest = 0;  // bytes, and of one buffer
  bool f64 = false;
};
Facts facts_of(cl_device_id device);
// Of the opened device, else of the one that a process alone would open.
Facts known_facts();

class Machine {
 public:
  static bool is_open();
  static Machine& get();  // throws orr::Error before open
  static void open(int32_t local_rank);

  cl_context context() const { return context_; }
  cl_command_queue make_queue() const;           // in order
  cl_command_queue own() const { return own_; }  // for what is done at return [main thread]
  const Facts& facts() const { return facts_; }
  // A kernel object of its own. Sources are compiled once for each set of options. [main thread]
  cl_kernel kernel(const std::string& source, const std::string& options, const char* name);

 private:
  explicit Machine(cl_device_id device);
  cl_program build(const std::string& source, const std::string& options) const;

  cl_device_id device_;
  cl_context context_ = nullptr;
  cl_command_queue own_ = nullptr;
  Facts facts_;
  std::map<std::pair<std::string, std::string>, cl_program> programs_;
};

}  // namespace ocl
