// SPDX-License-Identifier: Apache-2.0
//
// strategy.rounds, a driver as a third party writes one: ranks train alone on their own parts of
// the batch, with programs of their own for the update; whenever somebody reads weights, these
// become the means of all ranks'. `fault` has it break a rule.
#include <string>
#include <vector>

#include <orrery/sdk/driver.hpp>
#include <orrery/sdk/strategy.hpp>
#include <orrery/sdk/traffic.hpp>

namespace {

constexpr const char* kAxis = "round";
constexpr orr_option kOptions[] = {{"fault", ORR_ATTR_TEXT, 0, "", "what it does wrong"}};

struct Kept {
  int32_t value;
  std::string name, beside;
  orr_tensor type;
};

std::vector<Kept> of_roles(orr_program* program, const orr_edit* edit, uint32_t roles) {
  std::vector<Kept> found;
  orr::check(
      edit->each(program, roles, &found, [](void* arg, int32_t value, const orr_value_info* v) {
        static_cast<std::vector<Kept>*>(arg)->push_back({value, v->name, v->beside, v->type});
        return static_cast<orr_status*>(nullptr);
      }));
  return found;
}

int32_t gradient_state(orr_program* program, const orr_edit* edit, const Kept& parameter) {
  const std::string name = "gradient." + parameter.name;
  orr_state_desc how{};
  how.size = sizeof how, how.name = name.c_str(), how.like = -1, how.varying = "";
  how.rank = parameter.type.rank, how.dims = parameter.type.dims;
  how.dtype = parameter.type.dtype, how.passing = 1;
  int32_t made = -1;
  orr::check(edit->state(program, &how, &made));
  return made;
}

class Rounds : public orr::Driver {
 public:
  explicit Rounds(std::string fault) : fault_(std::move(fault)) {}

  void write(orr_program* step, const orr_edit* edit,
             const std::vector<int64_t>& leaf_first) override {
    const std::vector<Kept> params = of_roles(step, edit, 1u << ORR_ROLE_PARAM);
    std::vector<Kept> states = of_roles(step, edit, 1u << ORR_ROLE_STATE);
    std::erase_if(states, [](const Kept& s) { return s.beside.empty(); });
    states.insert(states.end(), params.begin(), params.end());
    for (size_t r = 0; r + 1 < leaf_first.size(); ++r)
      write_update(step, edit, params, states, static_cast<int32_t>(r));
    std::vector<int32_t> gradients;
    for (const Kept& p : params) gradients.push_back(edit->gradient(step, p.value));
    for (const Kept& s : states)
      if (fault_ != "updates") orr::check(edit->update(step, s.value, s.value));
    for (size_t i = 0; i < params.size(); ++i)
      if (gradients[i] >= 0)
        orr::check(edit->update(step, gradient_state(step, edit, params[i]), gradients[i]));
    for (const Kept& p : params) params_.push_back(p.name);
    if (fault_ == "late") orr::drive(step, edit, std::make_unique<Rounds>(""), "stop");
  }

  void open(const orr_driver_host& host) override {
    host_ = &host;
    const int64_t first = host.leaf_first[host.rank], last = host.leaf_first[host.rank + 1];
    orr::check(host.piece(host.self, first, last + (fault_ == "piece"), &piece_));
    if (host.ranks > 1) orr::check(host.split(host.self, 0, host.rank, &group_));
    if (fault_ == "state") orr::Parcel(host, {"no such state"});
    for (const std::string& name : params_) {
      weights_.emplace_back();
      orr::check(host.state(host.self, name.c_str(), &weights_.back()));
    }
  }

  void step(const orr_driver_step& step, double* outputs) override {
    orr::check(host_->compute(host_->self, piece_ + (fault_ == "pieces"), outputs));
    const int32_t rank = fault_ == "program" ? 7 : host_->rank;
    orr::check(host_->run(host_->self, name_of(rank).c_str(), step.scalars, step.step));
    outputs_.resize(static_cast<size_t>(host_->n_outputs));
    if (fault_ == "throws") throw "it";
  }

  void settle() override {
    if (fault_ == "outside") orr::check(host_->compute(host_->self, piece_, outputs_.data()));
    for (const orr_buffer& weights : weights_) {
      if (host_->ranks == 1) continue;
      orr_coll c{};
      c.size = sizeof c, c.op = ORR_COLL_ALL_REDUCE, c.dtype = ORR_F32, c.redop = ORR_RED_SUM;
      c.name = "weights", c.where = host_->where, c.send = c.recv = weights;
      c.count = static_cast<int64_t>(weights.bytes / sizeof(float));
      orr::check(host_->post(host_->self, group_, &c, 1));
      predicted_ += orr::traffic::bytes_sent(c, host_->rank, host_->ranks);
      for (int64_t i = 0; i < c.count; ++i)
        orr::data<float>(weights)[i] /= static_cast<float>(host_->ranks);
    }
  }

  void stop(const std::string&) override {}
  uint64_t predicted() const override { return predicted_; }

 private:
  static std::string name_of(int32_t rank) { return "update." + std::to_string(rank); }

  void write_update(orr_program* step, const orr_edit* edit, const std::vector<Kept>& params,
                    const std::vector<Kept>& states, int32_t rank) const {
    orr_program* to = nullptr;
    orr::check(edit->beside(step, name_of(fault_ == "names" ? 0 : rank).c_str(), rank, &to));
    std::vector<int32_t> given, as, wanted;
    for (const Kept& p : params)
      if (const int32_t gradient = edit->gradient(step, p.value); gradient >= 0 && fault_ != "cut")
        given.push_back(gradient), as.push_back(gradient_state(to, edit, p));
    for (const Kept& s : states) wanted.push_back(s.value);
    for (const Kept& s : states) wanted.push_back(edit->updated(step, s.value));
    orr_copy how{};
    how.size = sizeof how, how.from = step, how.given = given.data(), how.as = as.data();
    how.n_given = static_cast<int32_t>(given.size()), how.wanted = wanted.data();
    how.n_wanted = static_cast<int32_t>(wanted.size());
    std::vector<int32_t> made(wanted.size());
    orr::check(edit->copy(to, &how, made.data()));
    for (size_t i = 0; i < states.size(); ++i)
      orr::check(edit->update(to, made[i], made[states.size() + i]));
  }

  const std::string fault_;
  std::vector<std::string> params_;
  const orr_driver_host* host_ = nullptr;
  int32_t piece_ = 0, group_ = 0;
  std::vector<orr_buffer> weights_;
  std::vector<double> outputs_;
  uint64_t predicted_ = 0;
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = 1, out->options = kOptions;
    out->provides = "rounds", out->requires_ = "", out->conflicts = "";
  });
}

struct Editing {
  orr_program* program;
  const orr_edit* edit;
};

orr_status* place_batch(void* arg, int32_t value, const orr_value_info*) {
  const auto& e = *static_cast<const Editing*>(arg);
  return e.edit->place(e.program, value, kAxis, 0);
}

void share_batch(orr_program* program, const orr_edit* edit) {
  Editing editing{program, edit};
  orr::check(edit->axis(program, kAxis, 0));
  orr::check(edit->each(program, 1u << ORR_ROLE_BATCH, &editing, place_batch));
}

[[maybe_unused]] orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                                       const orr_options* o) {
  return orr::guard([&] {
    const std::string fault = o->text(o->self, "fault", "");
    share_batch(program, edit);
    orr_program* beside = nullptr;
    if (fault == "early") orr::check(edit->beside(program, "early", 0, &beside));
    orr_driver holes{};
    holes.size = sizeof holes;
    if (fault == "holes") orr::check(edit->drive(program, &holes));
    orr_serve serve{};
    serve.size = sizeof serve, serve.axis = kAxis;
    if (fault == "serve") orr::check(edit->serve(program, &serve));
    orr::drive(program, edit, std::make_unique<Rounds>(fault), "train in one process");
    if (fault == "twice") orr::drive(program, edit, std::make_unique<Rounds>(""), "stop");
  });
}

[[maybe_unused]] constexpr orr_strategy_api kApi =
    orr::strategy_table(describe, transform, orr::predict_nothing);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "rounds", "0.1.0",
           "ranks train alone, and meet when weights are read", orr::strategy_entry<kApi>, 1,
           {{"strategy", 1, 1}})
