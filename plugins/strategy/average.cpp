// SPDX-License-Identifier: Apache-2.0
//
// Local SGD: ranks share the batch but train alone, each on gradients of its own part, and every few
// steps their weights become the mean. APPROX: with every = 1, plain SGD and even parts it is data
// parallelism up to rounding.
// McDonald et al., NAACL 2010; Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019.
#include <string>

#include <orrery/sdk/pieces.hpp>
#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"every", ORR_ATTR_INT, 0, "1", "steps between two averages"},
    {"states", ORR_ATTR_INT, 0, "0", "1: optimizer states are averaged as well"},
    {"size", ORR_ATTR_INT, 0, "0", "ranks that share the batch; 0: all that are left"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = std::size(kOptions), out->options = kOptions;
    out->provides = "independent ranks", out->requires_ = "", out->conflicts = "a data axis, independent ranks";
  });
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
};

orr_status* place_batch(void* arg, int32_t value, const orr_value_info*) {
  auto* e = static_cast<Editing*>(arg);
  return e->edit->place(e->program, value, "average", 0);
}

void say_what_it_sends(const Editing& e, int64_t every) {
  int64_t ranks = e.edit->axis_size(e.program, "average"), bytes = 0;
  for (const orr::Param& p : orr::params_of(e.program, e.edit)) bytes += p.bytes;
  std::string text = "every " + std::to_string(every) + " steps weights of " + std::to_string(bytes) +
                     " bytes are averaged: a rank sends about " + std::to_string(2 * (ranks - 1) * bytes / ranks);
  orr::check(e.edit->diag(e.program, text.c_str()));
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit, const orr_options* o) {
  return orr::guard([&] {
    int64_t every = o->integer(o->self, "every", 1), size = o->integer(o->self, "size", 0);
    if (size < 0) throw orr::Error(ORR_INVALID, "size " + std::to_string(size) + " is negative");
    Editing e{program, edit};
    orr::check(edit->axis(program, "average", static_cast<int32_t>(size)));
    orr::check(edit->each(program, 1u << ORR_ROLE_BATCH, &e, place_batch));
    orr::check(edit->average(program, "average", static_cast<int32_t>(every),
                             static_cast<int32_t>(o->integer(o->self, "states", 0))));
    say_what_it_sends(e, every);
  });
}

// What every step sends: the loss.
orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] { out->bytes_sent = orr::bytes_of_sum(*query); });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "average", "0.1.0", "local SGD: train alone, average weights every few steps",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
