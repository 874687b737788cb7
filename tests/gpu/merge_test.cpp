// SPDX-License-Identifier: Apache-2.0
//
// Which launches of a recording the cuda plugin makes one, and that it changes no bit.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "fake_step.h"

namespace {

using namespace fake_step;

// Tensors of different lengths and a number that all read: what an optimizer has.
struct Tensors {
  explicit Tensors(const std::vector<int64_t>& lengths) {
    device();
    for (int64_t n : lengths) {
      const uint64_t bytes = 4 * static_cast<uint64_t>(n);
      host.push_back(std::make_unique<Memory>(ORR_TIER_PINNED, bytes));
      there.push_back(std::make_unique<Memory>(ORR_TIER_DEVICE, bytes));
    }
  }
  orr_buffer in(size_t i) const { return there[i]->whole; }
  const Memory& out(size_t i) const { return *there[i]; }
  int64_t length(size_t i) const { return static_cast<int64_t>(host[i]->whole.bytes / 4); }

  void fill() const {
    for (size_t t = 0; t < host.size(); ++t)
      for (int64_t i = 0; i < length(t); ++i)
        host[t]->floats()[i] = static_cast<float>(i % 97) / 8 + static_cast<float>(t);
    for (size_t t = 0; t < host.size(); ++t) main.copy(*there[t], *host[t]);
    main.finish();
  }
  std::vector<float> contents() const {
    std::vector<float> all;
    for (size_t t = 0; t < host.size(); ++t) main.copy(*host[t], *there[t]);
    main.finish();
    for (size_t t = 0; t < host.size(); ++t)
      all.insert(all.end(), host[t]->floats(), host[t]->floats() + length(t));
    return all;
  }
  // How many launches a recording of `enqueue` has. Played, it leaves the bits of the launches one
  // by one, every time.
  unsigned long long recorded(const std::function<void()>& enqueue) const {
    fill();
    enqueue(), enqueue();
    const std::vector<float> wanted = contents();
    fill();
    orr_graph* graph = nullptr;
    const auto before = calls({"cuLaunchKernel"});
    orrery::check(device().capture_begin(device().self, main.stream));
    enqueue();
    const auto launches = calls({"cuLaunchKernel"}) - before;
    orrery::check(device().capture_end(device().self, main.stream, &graph));
    for (int i = 0; i < 2; ++i)
      orrery::check(device().graph_launch(device().self, graph, main.stream));
    EXPECT_EQ(contents(), wanted);
    device().graph_destroy(device().self, graph);
    return launches;
  }
  std::vector<std::unique_ptr<Memory>> host, there;
  Stream main;
};

// w - rate * g, or w - rate * g - w: of n elements, with one rate for all of them.
Case update(int64_t n, bool decays) {
  Case c;
  c.kind = "pointwise";
  c.in = {tensor(ORR_F32, {n}), tensor(ORR_F32, {n}), tensor(ORR_F32, {1})};
  c.out = {tensor(ORR_F32, {n})};
  c.instrs = {{ORR_FN_INPUT, ORR_F32, 0, 0, 0, 0, 0}, {ORR_FN_INPUT, ORR_F32, 1, 0, 0, 0, 0},
              {ORR_FN_INPUT, ORR_F32, 2, 0, 0, 0, 0}, {ORR_FN_MUL, ORR_F32, 1, 2, 0, 0, 0},
              {ORR_FN_SUB, ORR_F32, 0, 3, 0, 0, 0},   {ORR_FN_SUB, ORR_F32, 4, 0, 0, 0, 0}};
  c.stored = {decays ? 5 : 4};
  return c;
}

TEST(FakeMerge, UpdatesTakeOneLaunchForEachExpression) {
  const Tensors t({1, 5, 5, 4099, 4099, 1024, 1024, 77, 77, 96, 96, 1, 1, 6, 6});
  std::vector<std::unique_ptr<Kernel>> updates;
  for (size_t i = 1; i < t.host.size(); i += 2)
    updates.push_back(std::make_unique<Kernel>(update(t.length(i), i % 4 == 1)));
  const auto all = [&] {
    for (size_t i = 0; i < updates.size(); ++i) {
      const size_t w = 2 * i + 1;
      updates[i]->launch(t.main, {t.in(w), t.in(w + 1), t.in(0)}, t.out(w));
    }
  };
  EXPECT_EQ(t.recorded(all), 2u + 1);  // that of one element has a kernel of its own
}

// y = 2x + `shift`: an expression of its own.
Case alone(int64_t n, double shift) {
  Case c = line();
  c.in = c.out = {tensor(ORR_F32, {n})};
  c.instrs[2].imm = shift;
  return c;
}

// Pairs (from, to) of one expression on tensors of one length.
unsigned long long recorded_lines(std::initializer_list<std::pair<size_t, size_t>> pairs) {
  const Tensors t({rows * cols, rows * cols, rows * cols, rows * cols});
  const Kernel one(line()), another(line());
  return t.recorded([&] {
    bool odd = false;
    for (const auto& [from, to] : pairs)
      ((odd = !odd) ? one : another).launch(t.main, {t.in(from)}, t.out(to));
  });
}

TEST(FakeMerge, WhatSharesAWrittenTensorStaysApart) {
  EXPECT_EQ(recorded_lines({{0, 1}, {2, 3}}), 1u);
  EXPECT_EQ(recorded_lines({{0, 1}, {0, 2}, {0, 3}}), 1u);  // all read one
  EXPECT_EQ(recorded_lines({{0, 1}, {1, 2}}), 2u);          // read what the first has written
  EXPECT_EQ(recorded_lines({{0, 1}, {2, 0}}), 2u);          // write what the first has read
  EXPECT_EQ(recorded_lines({{0, 1}, {2, 1}}), 2u);          // write the same
  EXPECT_EQ(recorded_lines({{0, 1}, {1, 2}, {0, 3}}), 2u);  // with the second
}

// A launch may join an earlier one only over those between that it does not touch.
TEST(FakeMerge, AnotherExpressionBetweenIsNotOvertaken) {
  constexpr int64_t n = rows * cols;
  const Tensors t({n, n, n, n, 1});
  const Kernel first(line()), other(update(n, false)), second(line());
  const auto recorded = [&](size_t from) {
    return t.recorded([&] {
      first.launch(t.main, {t.in(0)}, t.out(1));
      other.launch(t.main, {t.in(0), t.in(1), t.in(4)}, t.out(2));
      second.launch(t.main, {t.in(from)}, t.out(3));
    });
  };
  EXPECT_EQ(recorded(2), 3u);
  EXPECT_EQ(recorded(0), 2u);
}

TEST(FakeMerge, KernelsOfOneOpEachStayApart) {
  const Tensors t({rows * cols, rows * cols, 1, rows * inner, rows * inner});
  const Kernel first(alone(rows * cols, 3)), second(alone(rows * inner, 4));
  EXPECT_EQ(t.recorded([&] {
    first.launch(t.main, {t.in(0)}, t.out(1));
    second.launch(t.main, {t.in(3)}, t.out(4));
  }),
            2u);
}

// The columns of a matrix as tensors of their own, as the taps of a weight that is turned.
TEST(FakeMerge, PartsOfATensorAreOneLaunch) {
  constexpr int64_t n = 24, parts = 5;
  const Tensors t({n * n * parts, n * n, n * n, n * n, n * n, n * n});
  Case c = line();
  c.in = {kernel_suite::strided(ORR_F32, {n, n}, {n * parts, 1})},
  c.out = {tensor(ORR_F32, {n, n})};
  std::vector<std::unique_ptr<Kernel>> copies;
  for (int64_t i = 0; i < parts; ++i) copies.push_back(std::make_unique<Kernel>(c));
  EXPECT_EQ(t.recorded([&] {
    for (size_t i = 0; i < copies.size(); ++i) {
      orr_buffer part = t.in(0);
      part.offset += 4 * n * i, part.bytes = 4 * (n * n * parts - n * i);
      copies[i]->launch(t.main, {part}, t.out(i + 1));
    }
  }),
            1u);
}

// Borders of one tensor, each of which lies between the rows of the other.
TEST(FakeMerge, BordersOfATensorAreOneLaunch) {
  constexpr int64_t n = 24, width = 4 * n;
  const Tensors t({n * width, n * n});
  Case c = line();
  c.in = {tensor(ORR_F32, {n, n})}, c.out = {kernel_suite::strided(ORR_F32, {n, n}, {width, 1})};
  const Kernel first(c), second(c);
  const auto recorded = [&](uint64_t from, uint64_t to) {
    return t.recorded([&] {
      orr_buffer left = t.in(0), right = t.in(0);
      left.offset += 4 * from, left.bytes -= 4 * from;
      right.offset += 4 * to, right.bytes -= 4 * to;
      first.launch(t.main, {t.in(1)}, left);
      second.launch(t.main, {t.in(1)}, right);
    });
  };
  EXPECT_EQ(recorded(0, width - n), 1u);
  EXPECT_EQ(recorded(width - n, 0), 1u);
  EXPECT_EQ(recorded(0, n), 1u);
  EXPECT_EQ(recorded(0, n - 1), 2u);  // they share a column
  EXPECT_EQ(recorded(n - 1, 0), 2u);
}

// The sums over the rows of [rows, 8]; more than 64 rows are several blocks of them.
Case sum_of_rows(int64_t rows) {
  Case c;
  c.kind = "reduce";
  c.in = {tensor(ORR_F32, {1, rows, 8})}, c.out = {tensor(ORR_F32, {1, 8})};
  c.attrs = {kernel_suite::text("fn", "sum")};
  return c;
}

TEST(FakeMerge, SumsOfShortRowsAreOneLaunch) {
  for (int64_t n : {6, 64 * 3 + 1}) {
    const Tensors t({8 * n, 8 * n, 8 * n, 8, 8, 8});
    const Kernel first(sum_of_rows(n)), second(sum_of_rows(n)), third(sum_of_rows(n));
    const auto recorded = [&](size_t to) {
      return t.recorded([&] {
        first.launch(t.main, {t.in(0)}, t.out(3));
        second.launch(t.main, {t.in(1)}, t.out(4));
        third.launch(t.main, {t.in(2)}, t.out(to));
      });
    };
    EXPECT_EQ(recorded(5), 1u);
    EXPECT_EQ(recorded(4), 2u);  // writes what the second has written
  }
}

// Different lengths have blocks of different shapes.
TEST(FakeMerge, SumsOfOtherLengthsStayApart) {
  const Tensors t({8 * 130, 8 * 200, 8 * 200, 8, 8, 8});
  const Kernel first(sum_of_rows(130)), second(sum_of_rows(200)), third(sum_of_rows(200));
  EXPECT_EQ(t.recorded([&] {
    first.launch(t.main, {t.in(0)}, t.out(3));
    second.launch(t.main, {t.in(1)}, t.out(4));
    third.launch(t.main, {t.in(2)}, t.out(5));
  }),
            2u);
}

// A product's tensors are not known to the launches around it.
TEST(FakeMerge, NothingPassesAProduct) {
  const Tensors t({rows * inner, inner * cols, rows * cols, rows * cols, rows * cols});
  const Kernel first(line()), matmul(product()), second(line());
  const auto before_and_after = [&] {
    first.launch(t.main, {t.in(2)}, t.out(3));
    matmul.launch(t.main, {t.in(0), t.in(1)}, t.out(2));
    second.launch(t.main, {t.in(2)}, t.out(4));
  };
  EXPECT_EQ(t.recorded(before_and_after), 2u);
}

}  // namespace
