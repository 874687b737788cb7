// SPDX-License-Identifier: Apache-2.0
//
// A row for each sample: how many of its elements are NaN and infinite, the mean of the finite
// ones, the sum of their squared distances from it, the least and the greatest, and the first few
// elements. Rows are gathered like any result of samples, and merged in the order of the samples,
// so that the numbers are the same on any number of ranks.
#include "run/watched.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>

#include "program/build.h"
#include "program/elements.h"
#include "run/runtime.h"

namespace orrery {
namespace {

constexpr const char* kMark = "$watch";
constexpr int64_t kFirst = 4;      // elements that are printed
constexpr size_t kStatistics = 6;  // of a row, before its first elements

struct Statistics {
  int64_t finite = 0, nan = 0, infinite = 0;
  double mean = 0, squares = 0, least = DBL_MAX, greatest = -DBL_MAX;
  std::vector<double> first;

  double deviation() const { return std::sqrt(squares / static_cast<double>(finite)); }
  void add(const double* row, int64_t elements);
};

// Merges a row by Chan's formula for the variance of two samples.
void Statistics::add(const double* row, int64_t elements) {
  const auto bad_nan = std::llround(row[0]), bad_infinite = std::llround(row[1]);
  nan += bad_nan, infinite += bad_infinite;
  const int64_t more = elements - bad_nan - bad_infinite, all = finite + more;
  if (more == 0) return;
  const double difference = row[2] - mean,
               share = static_cast<double>(more) / static_cast<double>(all);
  mean += difference * share;
  squares += row[3] + difference * difference * static_cast<double>(finite) * share;
  least = std::min(least, row[4]), greatest = std::max(greatest, row[5]);
  finite = all;
}

std::string text_of(const Statistics& s) {
  std::string text;
  if (s.finite)
    text = fmt::format("mean {:.6g}, std {:.6g}, min {:.6g}, max {:.6g}", s.mean, s.deviation(),
                       s.least, s.greatest);
  else
    text = "no finite element";
  if (s.nan) text += fmt::format(", {} NaN", s.nan);
  if (s.infinite) text += fmt::format(", {} infinite", s.infinite);
  text += "; first";
  for (double x : s.first) text += std::isnan(x) ? " nan" : fmt::format(" {:.6g}", x);
  return text;
}

// What take_watched() must know is kept in the result's name, in lines.
std::string output_name(const Watched& w, int64_t elements) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", kMark, w.name, w.label, w.prints ? "print" : "record",
                     elements);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// f64 [rows, n]: the first elements of x [rows, ...] along its last dim. They are a window and not
// a slice: how a layer's outputs are sliced tells strategies how to cut the layer.
ValueId first_elements(Program& p, ValueId x) {
  const Dims dims = p.type(x).dims;
  for (size_t d = 1; d + 1 < dims.size(); ++d)
    x = build::every(p, x, static_cast<int64_t>(d), dims[d]);
  x = build::reshape(p, x, {dims[0], dims.back(), 1});
  const int64_t n = std::min(kFirst, dims.back());
  return build::reshape(p, build::windows(p, x, {n}, {dims.back()}, {1}), {dims[0], n});
}

// f64 [rows, statistics + first elements] of x [rows, ...].
ValueId rows_of(Program& p, ValueId x, int64_t elements) {
  const int64_t rows = p.type(x).dims[0];
  Dims inner;
  for (size_t d = 1; d < p.type(x).dims.size(); ++d) inner.push_back(static_cast<int64_t>(d));
  x = p.cast(x, ORR_F64);
  const auto sum = [&](const char* fn, ValueId of) {
    return build::reshape(p, build::reduce(p, fn, of, inner, true), {rows, 1});
  };
  const auto number = [](double n) { return Operand::number(n); };
  const ValueId finite = p.pointwise(ORR_FN_ISFINITE, {x}), is_nan = p.pointwise(ORR_FN_NE, {x, x});
  const auto finite_or = [&](ValueId of, double otherwise) {
    return p.pointwise(ORR_FN_SELECT, {finite, of, number(otherwise)});
  };
  const ValueId good = sum("sum", p.cast(finite, ORR_F64)),
                nans = sum("sum", p.cast(is_nan, ORR_F64));
  const ValueId infinite = p.pointwise(
      ORR_FN_SUB,
      {p.pointwise(ORR_FN_SUB, {p.constant(static_cast<double>(elements), ORR_F64), good}), nans});
  const ValueId mean = p.pointwise(
      ORR_FN_DIV, {sum("sum", finite_or(x, 0)), p.pointwise(ORR_FN_MAX, {good, number(1)})});
  const Dims broadcast(p.type(x).dims.size() - 1, 1);
  Dims wide = {rows};
  wide.insert(wide.end(), broadcast.begin(), broadcast.end());
  const ValueId distance =
      finite_or(p.pointwise(ORR_FN_SUB, {x, build::reshape(p, mean, wide)}), 0);
  return build::concat(
      p,
      {nans, infinite, mean, sum("sumsq", distance), sum("min", finite_or(x, DBL_MAX)),
       sum("max", finite_or(x, -DBL_MAX)), first_elements(p, x)},
      1);
}

bool is_taken(const Program& p, const std::string& name) {
  return std::any_of(p.outputs().begin(), p.outputs().end(), [&](auto& output) {
    return is_watched(output.first) && lines_of(output.first)[3] == "record" &&
           lines_of(output.first)[1] == name;
  });
}

Statistics merged(const HostTensor& rows, int64_t elements) {
  Statistics all;
  const auto width = static_cast<size_t>(rows.type.dims[1]);
  const auto* at = rows.data<double>();
  for (int64_t r = 0; r < rows.type.dims[0]; ++r)
    all.add(at + static_cast<size_t>(r) * width, elements);
  all.first.assign(at + kStatistics, at + width);
  return all;
}

}  // namespace

void watch(Program& p, ValueId x, Watched watched) {
  if (p.value(x).batch() == Batch::partial) x = p.add1("total", {x});
  const bool samples = p.value(x).batch() == Batch::sharded;
  Dims dims = p.type(x).dims;
  if (samples) {
    x = build::batch_first(p, x);
    if (p.type(x).dims.size() == 1) x = build::reshape(p, x, {-1, 1});
  } else {
    dims.insert(dims.begin(), 1);
    x = build::reshape(p, x, dims);
    if (dims.size() == 1) x = build::reshape(p, x, {1, 1});
  }
  int64_t elements = 1;
  for (size_t d = 1; d < p.type(x).dims.size(); ++d) elements *= p.type(x).dims[d];
  const std::string name = watched.name;
  for (int n = 2; !watched.prints && is_taken(p, watched.name); ++n)
    watched.name = fmt::format("{}#{}", name, n);
  p.output(output_name(watched, elements), rows_of(p, build::stop_gradient(p, x), elements));
}

bool is_watched(const std::string& output) { return output.starts_with(kMark); }

std::string title_of_result(const std::string& output) {
  if (!is_watched(output)) return "the second result '" + output + "'";
  return "what is watched, " + lines_of(output)[2] + ",";
}

std::map<std::string, double> take_watched(std::vector<std::pair<std::string, HostTensor>>& results,
                                           const std::string& when) {
  std::map<std::string, double> recorded;
  for (auto& [output, rows] : results) {
    if (!is_watched(output)) continue;
    const std::vector<std::string> facts = lines_of(output);
    const Statistics s = merged(rows, std::stoll(facts[4]));
    if (facts[3] == "print") {
      print_line(fmt::format("{}: {}: {}", when, facts[2], text_of(s)));
      continue;
    }
    const auto none = std::nan("");
    recorded[facts[1] + ".mean"] = s.finite ? s.mean : none;
    recorded[facts[1] + ".std"] = s.finite ? s.deviation() : none;
    recorded[facts[1] + ".min"] = s.finite ? s.least : none;
    recorded[facts[1] + ".max"] = s.finite ? s.greatest : none;
    recorded[facts[1] + ".nan"] = static_cast<double>(s.nan);
    recorded[facts[1] + ".infinite"] = static_cast<double>(s.infinite);
  }
  std::erase_if(results, [](auto& result) { return is_watched(result.first); });
  return recorded;
}

void print_line(const std::string& line) {
  if (world_info().rank != 0) return;
  Runtime::get().observers().log(line);
  std::fwrite((line + "\n").data(), 1, line.size() + 1, stdout);
  std::fflush(stdout);
}

std::string statistics_text(const HostTensor& x) {
  Statistics s;
  const auto size = static_cast<size_t>(orr_dtype_bytes(x.type.dtype));
  for (int64_t i = 0; i < x.type.elements(); ++i) {
    const double value =
        read_element(x.type.dtype, x.data<std::byte>() + static_cast<size_t>(i) * size);
    if (i < kFirst) s.first.push_back(value);
    const bool good = std::isfinite(value);
    const double row[] = {std::isnan(value) * 1.0, std::isinf(value) * 1.0, good ? value : 0, 0,
                          good ? value : DBL_MAX,  good ? value : -DBL_MAX};
    s.add(row, 1);
  }
  return text_of(s);
}

}  // namespace orrery
