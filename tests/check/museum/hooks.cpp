// SPDX-License-Identifier: Apache-2.0
//
// Bad strategies of ops, states and hooks: the template, whose editing calls go through a table
// that bends one of them.
#include "fault.h"
#include "good_strategy.cpp"
#pragma pop_macro("ORR_PLUGIN")

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace {

const orr_edit* real = nullptr;  // the host's table, while one of its calls is made
const long job = getppid();      // one for all ranks of a job, another in the next

orr::Value in_another_shape(const orr::Program& p, int32_t value) {
  std::vector<int64_t> dims = p.dims(value);
  dims.insert(dims.begin(), 1);
  return p.reshape(value, dims);
}

orr_status* bad_op(orr_program* of, const orr_op_desc* desc, int32_t* out, int32_t capacity,
                   int32_t* n) {
  orr_op_desc bent = *desc;
  orr_attr k{};
  const bool top = std::string_view(desc->kind) == "topk";
  if (fault("adds_an_unknown_op") && top) bent.kind = "top_k";
  const char* rank = std::getenv("ORRERY_RANK");
  if (fault("sends_more_on_rank_1") && top && rank && std::string_view(rank) == "1")
    k = *desc->attrs, k.i += 1, bent.attrs = &k;
  return real->op(of, &bent, out, capacity, n);
}

orr_status* bad_state(orr_program* of, const orr_state_desc* desc, int32_t* out) {
  orr_state_desc bent = *desc;
  const std::string anew = desc->name + std::to_string(job);
  if (fault("names_states_anew")) bent.name = anew.c_str();
  if (fault("shares_a_state_that_differs")) bent.varying = "";
  return real->state(of, &bent, out);
}

orr_status* bad_update(orr_program* of, int32_t state, int32_t value) {
  return orr::guard([&] {
    const orr::Program p(of, real);
    if (fault("keeps_another_shape")) value = in_another_shape(p, value);
    p.update(state, value);
  });
}

orr_edit bent_table() {
  orr_edit bent = *real;
  bent.op = bad_op, bent.state = bad_state, bent.update = bad_update;
  return bent;
}

orr_status* bad_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t parameter,
                     int32_t gradient, int32_t* out) {
  real = edit;
  const orr_edit bent = bent_table();
  const auto* good = static_cast<const orr_gradient_hook*>(arg);
  if (fault("throws_in_its_hook"))
    return orr::guard([] { throw std::runtime_error("thrown out of a hook"); });
  if (orr_status* status = good->exchange(good->arg, program, &bent, parameter, gradient, out))
    return status;
  return orr::guard([&] {
    const orr::Program p(program, edit);
    const orr::Value made{*out, &p};
    if (fault("returns_its_own_gradient")) *out = gradient;
    if (fault("returns_another_shape")) *out = in_another_shape(p, made);
    if (fault("depends_on_the_job")) *out = made * (1 + 1e-6 * static_cast<double>(job));
  });
}

orr_status* bad_exchange(orr_program* program, const char* axis, const orr_gradient_hook* hook) {
  orr_gradient_hook bent = {sizeof bent, new orr_gradient_hook(*hook),
                            [](void* arg) {
                              const auto* good = static_cast<orr_gradient_hook*>(arg);
                              good->release(good->arg);
                              delete good;
                            },
                            bad_hook};
  return real->exchange(program, axis, &bent);
}

orr_status* bad_transform(void* self, orr_program* program, const orr_edit* edit,
                          const orr_options* options) {
  real = edit;
  orr_edit bent = *edit;
  bent.exchange = bad_exchange;
  if (orr_status* status = table.transform(self, program, &bent, options)) return status;
  return orr::guard([&] {
    const orr::Program p(program, edit);
    if (fault("lets_no_axis_train_apart")) p.independent("nobody");
    if (fault("never_synchronizes")) p.every(0, 1, [](const orr::Program&, int32_t) {});
    if (!fault("replaces_by_another_shape")) return;
    orr::Value wide, narrow;
    p.each(1u << ORR_ROLE_PARAM, [&](orr::Value v, const orr_value_info& info) {
      (info.type.rank == 2 ? wide : narrow) = v;
    });
    p.replace(wide, narrow);
  });
}

orr_strategy_api bad_table() {
  orr_strategy_api bad = table;
  bad.transform = bad_transform;
  if (fault("says_it_is_exact"))
    bad.describe = [](void* self, orr_strategy_info* out) {
      orr_status* status = table.describe(self, out);
      out->numeric_class = ORR_CLASS_EXACT;
      return status;
    };
  return bad;
}

const orr_strategy_api bad = bad_table();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, FAULT_NAME, "0.1.0", "A bad strategy", orr::strategy_entry<bad>, 1,
           {{"strategy", 1, 1}})
