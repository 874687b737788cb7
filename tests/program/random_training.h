// SPDX-License-Identifier: Apache-2.0
//
// Seeded training steps out of the op table: any op, on samples or on what all of them share, fed
// by whatever the ops before it made; a loss of means and penalties, results, states that the
// forward pass updates, an optimizer. For comparing ways to spread the same step.
#pragma once

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "program/program.h"
#include "table.h"

namespace program_test {

class RandomTraining {
 public:
  explicit RandomTraining(uint32_t seed);

  const Program& program() const { return p_; }
  const Named& fields() const { return fields_; }
  const Named& scalars() const { return scalars_; }
  int64_t batch() const { return batch_; }
  // Errors of ops that were refused while the step was written, which went on without them.
  const std::vector<std::string>& refused() const { return refused_; }
  // Whether sums that are rounded otherwise can change no result by more than that.
  bool smooth() const { return smooth_; }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<double>(0, 1)(random_) < p; }
  double number(double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(random_);
  }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[pick(list.size())];
  }
  template <class Body>
  void attempt(Body body);

  ValueId state(const std::string& kind, const Type& type, orrery::Role role, double lo, double hi);
  ValueId field(const Type& type, double lo, double hi, bool whole);
  ValueId into(ValueId x, double lo, double hi);
  ValueId samples(const Dims& dims, int batch_dim, const In& in);
  ValueId shared(const Dims& dims, const In& in);
  ValueId fit(ValueId x, const Dims& dims);
  ValueId summed();
  ValueId of_batch(ValueId x);
  void apply(const Entry& e);
  void extra();
  void derivative();
  void update_state();
  ValueId term();
  ValueId loss();
  void clip_norms(orrery::TrainParts& parts);
  void results(ValueId loss);
  ValueId optimize(const std::shared_ptr<orrery::State>& param, ValueId value, ValueId gradient);
  void keep(ValueId v);

  std::mt19937 random_;
  Program p_;
  int64_t batch_ = 6;
  size_t optimizer_ = 0;
  bool smooth_ = true;
  std::vector<ValueId> sharded_, shared_, sums_, means_;  // reals, f32
  std::vector<std::shared_ptr<orrery::State>> params_;
  size_t n_states_ = 0;
  std::vector<std::string> refused_;
  Named fields_, scalars_;
};

// What of an example's inputs runs over the batch when a factor of its op does: by factor, by
// input, the dim or kNone (table_checks.cpp).
std::vector<std::vector<int>> cuts(const Entry& e);

}  // namespace program_test
