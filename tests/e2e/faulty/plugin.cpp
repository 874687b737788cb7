// SPDX-License-Identifier: Apache-2.0
//
// The plugin "faulty": the reference's matrix products, on a machine that fails once. When the file
// FAULTY_FILE is there, it lets FAULTY_SKIP products of rank FAULTY_RANK pass and then flips a bit:
// of the result, or with FAULTY_IN=1 of the second factor after the product. With FAULTY_SECONDS it
// computes right, but takes so long. Rank -1: all ranks.
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <orrery/sdk/plugin.hpp>

#include "table.h"

namespace faulty {
namespace {

long number(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : 0;
}

bool is_due() {
  static long skip = number("FAULTY_SKIP");
  const char* file = std::getenv("FAULTY_FILE");
  const long rank = number("FAULTY_RANK");
  return file && access(file, F_OK) == 0 && (rank < 0 || rank == number("ORRERY_RANK")) &&
         skip-- == 0;
}

int32_t probe(void*, char*, uint32_t) { return 1; }

void supports(void*, const orr_op* op, orr_support* out) {
  if (std::string_view(op->kind) != "matmul") return orr::copy_text(out->reason, "products only");
  reference::table().supports(nullptr, op, out);
  if (out->score) out->score = 1000;
}

orr_status* measure(void*, const orr_op* op, orr_kernel_size* out) {
  return reference::table().measure(nullptr, op, out);
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return reference::table().prepare(nullptr, op, out);
}

void release(void*, orr_kernel* kernel) { reference::table().release(nullptr, kernel); }

orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer* in, const orr_buffer* out,
                   const orr_buffer* workspace) {
  orr_status* status = reference::table().launch(kernel, nullptr, in, out, workspace);
  if (status || !is_due()) return status;
  if (const timespec time{number("FAULTY_SECONDS"), 0}; time.tv_sec > 0)
    nanosleep(&time, nullptr);
  else
    orr::data<char>(number("FAULTY_IN") ? in[1] : out[0])[2] ^= 0x10;
  return status;
}

const orr_kernel_api kernel_table = {sizeof(orr_kernel_api),
                                     nullptr,
                                     "host",
                                     probe,
                                     supports,
                                     measure,
                                     prepare,
                                     release,
                                     launch,
                                     nullptr};

const void* get_table(void*, const char* id, uint32_t version) {
  return std::string_view(id) == "kernel" && version == 1 ? &kernel_table : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof(*out), nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace
}  // namespace faulty

ORR_PLUGIN(ORR_KIND_KERNEL, "faulty", "1.0.0", "Matrix products that fail once", faulty::entry, 1,
           {{"kernel", 1, 1}})
