// SPDX-License-Identifier: Apache-2.0
//
// The kernel plugin "groups" of tests: claims pointwise ops of equal dims, two to four at a time,
// wherever they stand, and computes a group by the reference's kernels, one after another. It names
// many groups that cannot be, which the core must not take.
#include <orrery/ops.h>
#include <algorithm>
#include <memory>
#include <orrery/sdk/plugin.hpp>
#include <vector>

#include "table.h"

namespace groups {
namespace {

bool same_dims(const orr_tensor& a, const orr_tensor& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

// Whether all kernels give the function the same bits.
bool is_exact(const orr_instr& i) {
  return i.fn <= ORR_FN_CAST || (i.fn >= ORR_FN_ADD && i.fn <= ORR_FN_MAX) ||
         (i.fn >= ORR_FN_NEG && i.fn <= ORR_FN_SIGN) || i.fn >= ORR_FN_EQ;
}

// Whether the op is one for the reference as it stands in a program: nothing is repeated.
bool is_plain(const orr_op& op) {
  if (!op.expr || !std::all_of(op.expr->instrs, op.expr->instrs + op.expr->n_instrs, is_exact))
    return false;
  const auto like_first = [&](const orr_tensor& t) { return same_dims(t, op.out[0]); };
  return std::string_view(op.kind) == "pointwise" &&
         std::all_of(op.in, op.in + op.n_in, like_first) &&
         std::all_of(op.out, op.out + op.n_out, like_first);
}

orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  std::vector<int32_t> plain;
  for (int32_t i = 0; i < program->n_ops; ++i)
    if (is_plain(*program->ops[i].op)) plain.push_back(i);
  uint32_t random = 1;
  for (size_t first = 0; first < plain.size(); ++first)
    for (size_t tries = 0; tries < 4; ++tries) {
      std::vector<int32_t> ops;
      for (size_t i = first; i < plain.size() && ops.size() < 2 + tries % 3; ++i) {
        random = random * 1664525 + 1013904223;
        const bool fits =
            same_dims(program->ops[plain[i]].op->out[0], program->ops[plain[first]].op->out[0]);
        if (i == first || (fits && random >> 30)) ops.push_back(plain[i]);
      }
      claims->take(claims->arg, ops.data(), static_cast<int32_t>(ops.size()));
      std::swap(ops.front(), ops.back());  // is in no order
      claims->take(claims->arg, ops.data(), static_cast<int32_t>(ops.size()));
    }
  const int32_t nowhere[] = {0, program->n_ops};
  claims->take(claims->arg, nowhere, 2);
  claims->take(claims->arg, nullptr, -1);
  return nullptr;
}

// Numbers of values, and what computes them.
struct Group {
  struct Member {
    orr_kernel* kernel;
    uint64_t workspace;
    std::vector<int32_t> in, out;
  };
  ~Group() {
    for (const Member& m : members) reference::table().release(nullptr, m.kernel);
  }
  std::vector<Member> members;
  std::vector<int32_t> in, out;
  std::vector<uint64_t> bytes;  // by value
};

int32_t probe(void*, char* reason, uint32_t bytes) {
  if (bytes) reason[0] = 0;
  return 1;
}

bool is_here(const orr_op& op) {
  if (std::string_view(op.kind) != "group") return false;
  for (int32_t i = 0; i < op.group->n_ops; ++i)
    if (!is_plain(*op.group->ops[i].op)) return false;
  return true;
}

void supports(void*, const orr_op* op, orr_support* out) {
  out->score = is_here(*op) ? 1000 : 0;
  orr::copy_text(out->reason, out->score ? "" : "only groups of pointwise ops are here");
  orr::copy_text(out->numerics, "ops.h");
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const orr_group& given = *op->group;
    auto group = std::make_unique<Group>();
    group->in.assign(given.in, given.in + given.n_in);
    group->out.assign(given.out, given.out + given.n_out);
    group->bytes.resize(static_cast<size_t>(given.n_values));
    for (int32_t i = 0; i < given.n_ops; ++i) {
      const orr_group_op& one = given.ops[i];
      orr_kernel* kernel = nullptr;
      orr_kernel_size size{};
      orr::check(reference::table().measure(nullptr, one.op, &size));
      orr::check(reference::table().prepare(nullptr, one.op, &kernel));
      group->members.push_back({kernel,
                                size.workspace,
                                {one.in, one.in + one.op->n_in},
                                {one.out, one.out + one.op->n_out}});
      for (int32_t j = 0; j < one.op->n_out; ++j)
        group->bytes[static_cast<size_t>(one.out[j])] = static_cast<uint64_t>(
            orr::elements(one.op->out[j]) * orr_dtype_bytes(one.op->out[j].dtype));
    }
    *out = reinterpret_cast<orr_kernel*>(group.release());
  });
}

void release(void*, orr_kernel* kernel) { delete reinterpret_cast<Group*>(kernel); }

orr_status* launch(orr_kernel* kernel, orr_stream* stream, const orr_buffer* in,
                   const orr_buffer* out, const orr_buffer*) {
  return orr::guard([&] {
    const Group& group = *reinterpret_cast<Group*>(kernel);
    std::vector<std::vector<char>> own(group.bytes.size());
    std::vector<orr_memory> memory(group.bytes.size());
    std::vector<orr_buffer> at(group.bytes.size());
    for (size_t v = 0; v < own.size(); ++v) {
      own[v].resize(group.bytes[v]);
      memory[v].host = own[v].data(), memory[v].bytes = group.bytes[v];
      at[v] = {&memory[v], 0, group.bytes[v]};
    }
    for (size_t i = 0; i < group.in.size(); ++i) at[static_cast<size_t>(group.in[i])] = in[i];
    for (size_t i = 0; i < group.out.size(); ++i) at[static_cast<size_t>(group.out[i])] = out[i];
    for (const Group::Member& m : group.members) {
      std::vector<orr_buffer> from, to;
      for (int32_t v : m.in) from.push_back(at[static_cast<size_t>(v)]);
      for (int32_t v : m.out) to.push_back(at[static_cast<size_t>(v)]);
      std::vector<char> bytes(m.workspace);
      orr_memory scratch{};
      scratch.host = bytes.data(), scratch.bytes = m.workspace;
      const orr_buffer work{&scratch, 0, m.workspace};
      orr::check(reference::table().launch(m.kernel, stream, from.data(), to.data(), &work));
    }
  });
}

const orr_kernel_api kernels = {sizeof(orr_kernel_api),
                                nullptr,
                                "host",
                                probe,
                                supports,
                                measure,
                                prepare,
                                release,
                                launch,
                                claim};

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  out->get = [](void*, const char* id, uint32_t version) -> const void* {
    return std::string_view(id) == "kernel" && version == 1 ? &kernels : nullptr;
  };
  return nullptr;
}

}  // namespace
}  // namespace groups

ORR_PLUGIN(ORR_KIND_KERNEL, "groups", "1.0.0", "Groups of pointwise ops", groups::entry, 1,
           {{"kernel", 1, 1}})
