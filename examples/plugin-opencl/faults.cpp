// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <algorithm>
#include <mutex>

#include <orrery/sdk/plugin.hpp>

namespace ocl {
namespace {

struct Record {
  int64_t number, row, value;
};

std::mutex mutex;
std::vector<std::string> texts;
cl_mem record = nullptr;

void put(std::string& text, const std::string& name, int64_t value) {
  if (const size_t at = text.find(name); at != std::string::npos)
    text.replace(at, name.size(), std::to_string(value));
}

}  // namespace

cl_mem fault_record() {
  if (record) return record;
  Record none{};
  cl_int code;
  record = clCreateBuffer(Machine::get().context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                          sizeof none, &none, &code);
  check(code, "clCreateBuffer");
  return record;
}

int64_t add_fault(const std::string& text) {
  const std::lock_guard lock(mutex);
  const auto at = std::find(texts.begin(), texts.end(), text);
  if (at != texts.end()) return at - texts.begin() + 1;
  texts.push_back(text);
  return static_cast<int64_t>(texts.size());
}

void throw_fault() {
  const std::lock_guard lock(mutex);
  if (!record) return;
  Record found{};
  const cl_command_queue queue = Machine::get().own();
  check(clEnqueueReadBuffer(queue, record, CL_TRUE, 0, sizeof found, &found, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  if (found.number == 0) return;
  const Record none{};
  check(clEnqueueWriteBuffer(queue, record, CL_TRUE, 0, sizeof none, &none, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
  std::string text = texts.at(static_cast<size_t>(found.number - 1));
  put(text, "{row}", found.row), put(text, "{value}", found.value);
  throw orr::Error(ORR_INVALID, text);
}

}  // namespace ocl
