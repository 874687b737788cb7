// SPDX-License-Identifier: Apache-2.0
//
// The kernel plugin "groups" of tests: claims pointwise ops of equal dims, two to four at a time,
// wherever they stand, and sums with the pointwise op that reads them (sdk/claims.hpp). It computes
// a group by the reference's kernels, one after another, and names many groups that cannot be,
// which the core must not take.
#include <orrery/ops.h>
#include <algorithm>
#include <memory>
#include <orrery/sdk/joined.hpp>
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

bool is_exact(const orr_op& op) {
  return op.expr && std::all_of(op.expr->instrs, op.expr->instrs + op.expr->n_instrs,
                                [](const orr_instr& i) { return is_exact(i); });
}

// Whether the op is one for the reference as it stands in a program: nothing is repeated.
bool is_plain(const orr_op& op) {
  if (!is_exact(op)) return false;
  const auto like_first = [&](const orr_tensor& t) { return same_dims(t, op.out[0]); };
  return std::string_view(op.kind) == "pointwise" &&
         std::all_of(op.in, op.in + op.n_in, like_first) &&
         std::all_of(op.out, op.out + op.n_out, like_first);
}

orr_status* claim(void*, const orr_group* program, const orr_claims* claims) {
  if (program->fused) orr::claim_sums_next(*program, *claims);
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

bool is_of_pointwise_ops(const orr_group& group) {
  return std::all_of(group.ops, group.ops + group.n_ops,
                     [](const orr_group_op& one) { return is_plain(*one.op); });
}

// Whether the op is a sum_next whose bits all kernels have.
bool is_sum_next(const orr::JoinedOp& joined) {
  const orr_op& op = joined.get();
  return op.group && is_exact(*op.group->ops[0].op) && is_exact(*op.group->ops[1].op);
}

void supports(void*, const orr_op* op, orr_support* out) {
  orr::copy_text(out->numerics, "ops.h");
  try {
    if (std::string_view(op->kind) != "group") throw orr::Unsupported("only groups are here");
    if (is_of_pointwise_ops(*op->group)) return void(out->score = 1000);
    const orr::JoinedOp joined(*op);
    orr::require(is_sum_next(joined), "another group");
    out->score = 1000, out->strided_in = ~0u;
    joined.answer(*out);
  } catch (const orr::Unsupported& e) {
    out->score = 0;
    orr::copy_text(out->reason, e.what());
  }
}

orr_status* measure(void*, const orr_op*, orr_kernel_size* out) {
  out->workspace = 0;
  return nullptr;
}

uint64_t bytes_of(const orr_tensor& t) {
  return static_cast<uint64_t>(orr::elements(t) * orr_dtype_bytes(t.dtype));
}

void add(Group& group, const orr_op& op, std::vector<int32_t> in, std::vector<int32_t> out) {
  orr_kernel* kernel = nullptr;
  orr_kernel_size size{};
  orr::check(reference::table().measure(nullptr, &op, &size));
  orr::check(reference::table().prepare(nullptr, &op, &kernel));
  for (int32_t j = 0; j < op.n_out; ++j) {
    const auto v = static_cast<size_t>(out[static_cast<size_t>(j)]);
    if (group.bytes.size() <= v) group.bytes.resize(v + 1);
    group.bytes[v] = bytes_of(op.out[j]);
  }
  group.members.push_back({kernel, size.workspace, std::move(in), std::move(out)});
}

std::unique_ptr<Group> of_pointwise_ops(const orr_group& given) {
  auto group = std::make_unique<Group>();
  group->in.assign(given.in, given.in + given.n_in);
  group->out.assign(given.out, given.out + given.n_out);
  group->bytes.resize(static_cast<size_t>(given.n_values));
  for (int32_t i = 0; i < given.n_ops; ++i) {
    const orr_group_op& one = given.ops[i];
    add(*group, *one.op, {one.in, one.in + one.op->n_in}, {one.out, one.out + one.op->n_out});
  }
  return group;
}

// The terms, their sum, and what reads it. Values are the inputs of the launch, then what is made.
std::unique_ptr<Group> of_sum_next(const orr_op& op) {
  const orr::JoinedOp joined(op);
  const orr_op &both = joined.get(), &sum = *both.group->ops[0].op, &next = *both.group->ops[1].op;
  const std::vector<int32_t>& places = joined.places().in;
  auto group = std::make_unique<Group>();
  for (int32_t i = 0; i < op.n_in; ++i) group->in.push_back(i);
  const int32_t terms = op.n_in, added = terms + 1, made = terms + 2;

  orr_op first = sum, reduce = sum;
  const int64_t outer = orr::attr_int(sum, "outer", 1), columns = orr::attr_int(sum, "columns", 1);
  const int64_t rows = orr::elements(sum.in[0]) / (outer * columns);
  orr_tensor y = sum.in[0], x{};
  y.dtype = sum.expr->instrs[sum.expr->outputs[0]].dtype;
  int64_t stride = 1;
  for (int d = y.rank; d-- > 0; stride *= y.dims[d]) y.strides[d] = stride;
  x.dtype = y.dtype, x.rank = 3;
  x.dims[0] = outer, x.dims[1] = rows, x.dims[2] = columns;
  x.strides[0] = rows * columns, x.strides[1] = columns, x.strides[2] = 1;
  first.kind = "pointwise", first.out = &y, first.n_attrs = 0;
  reduce.kind = "reduce", reduce.in = &x, reduce.n_in = 1, reduce.expr = nullptr;
  add(*group, first, {places.begin(), places.begin() + sum.n_in}, {terms});
  add(*group, reduce, {terms}, {added});

  std::vector<int32_t> in, out;
  const int32_t* read = both.group->ops[1].in;
  for (int32_t i = 0, k = sum.n_in; i < next.n_in; ++i)
    in.push_back(read[i] == both.group->ops[0].out[0] ? added : places[static_cast<size_t>(k++)]);
  for (int32_t j = 0; j < next.n_out; ++j) out.push_back(made + j);
  add(*group, next, in, out);
  group->out.resize(static_cast<size_t>(op.n_out));
  for (int32_t j = 0; j < both.n_out; ++j)
    if (const int32_t at = joined.places().out[static_cast<size_t>(j)]; at >= 0)
      group->out[static_cast<size_t>(at)] = j < next.n_out ? made + j : added;
  return group;
}

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    auto group = is_of_pointwise_ops(*op->group) ? of_pointwise_ops(*op->group) : of_sum_next(*op);
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
