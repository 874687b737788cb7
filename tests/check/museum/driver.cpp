// SPDX-License-Identifier: Apache-2.0
//
// Bad drivers.
#include "fault.h"

#include "../../e2e/driver/rounds.cpp"
#pragma pop_macro("ORR_PLUGIN")

namespace {

class Bad : public Rounds {
 public:
  Bad() : Rounds("") {}
  void step(const orr_driver_step& step, double* outputs) override {
    Rounds::step(step, outputs);
    if (fault("throws_in_a_step")) throw 1;
  }
  void settle() override {
    Rounds::settle();
    if (fault("fails_when_it_settles")) throw orr::Error(ORR_FAILED, "it does not settle");
  }
  uint64_t predicted() const override {
    return fault("foretells_half") ? Rounds::predicted() / 2 : Rounds::predicted();
  }
};

orr_status* bad_transform(void*, orr_program* program, const orr_edit* edit, const orr_options*) {
  return orr::guard([&] {
    share_batch({program, edit});
    orr::drive({program, edit}, std::make_unique<Bad>(), "leave it out");
  });
}

constexpr orr_strategy_api bad = orr::strategy_table(describe, bad_transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, FAULT_NAME, "0.1.0", "A bad driver", orr::strategy_entry<bad>, 1,
           {{"strategy", 1, 1}})
