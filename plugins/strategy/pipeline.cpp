// SPDX-License-Identifier: Apache-2.0
//
// Pipeline parallelism: the model is cut into stages on different ranks, and microbatches flow
// through them. EXACT in every schedule, because the order in which microbatches run does not
// change the order in which they are added (docs/design.md, "Sums in canonical order"). With p
// ranks, m microbatches and v chunks on each rank the schedules are:
//
//   gpipe        all forward, then all backward; bubble (p-1)/(m+p-1)       Huang et al. 2019
//   1f1b         alternates once filled; the same bubble, but at most p
//                microbatches are in memory                                 Narayanan et al. 2019
//   interleaved  1f1b over v chunks a rank; bubble (p-1)/(vm+p-1)           Narayanan et al. 2021
//   looped       v chunks a rank, breadth first: all microbatches of a chunk before the next one
//                                                                           Lamy-Poirier 2023
//   zb1          1f1b with weight gradients put off into the bubble         Qi et al. 2024
//   zbv          two chunks a rank in a V, weight gradients put off         Qi et al. 2024
//
// "script" means that a function of the script orders the cells; this plugin is not asked.
#include <algorithm>
#include <string>
#include <vector>

#include <orrery/sdk/strategy.hpp>

namespace {

constexpr orr_option kOptions[] = {
    {"size", ORR_ATTR_INT, 0, "0",
     "stages, one a rank; 0: as many as `stages` lists, else all ranks that are left"},
    {"stages", ORR_ATTR_TEXT, 0, "auto",
     "modules of each chunk: \"tok,pos,blocks.1-6;blocks.7-12,norm,head\"; or auto"},
    {"schedule", ORR_ATTR_TEXT, 0, "1f1b",
     "gpipe, 1f1b, interleaved, looped, zb1, zbv, or a function that orders the cells of a stage"},
    {"chunks", ORR_ATTR_INT, 0, "0",
     "chunks of the model on each rank: interleaved and looped; 0: 2 there, else 1"},
};

// How the model is spread over the ranks.
struct Shape {
  std::string schedule;
  int ranks = 1, chunks = 1;         // `chunks` on each rank
  std::vector<std::string> modules;  // of each chunk; empty: chosen by the host ("auto")

  bool is_v() const { return schedule == "zbv"; }
  int at(int chunk) const {
    int r = chunk % ranks;
    return is_v() && chunk / ranks % 2 ? ranks - 1 - r : r;
  }
};

std::vector<std::string> cut(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

int64_t integer(const orr_options* o, const char* name) { return o->integer(o->self, name, 0); }

Shape shape_of(const orr_options* o, int ranks_left) {
  Shape s;
  s.schedule = o->text(o->self, "schedule", "1f1b");
  static const std::vector<std::string> known = {"gpipe", "1f1b", "interleaved", "looped",
                                                 "zb1",   "zbv",  "script"};
  if (std::find(known.begin(), known.end(), s.schedule) == known.end())
    throw orr::Error(ORR_INVALID, "there is no schedule '" + s.schedule +
                                      "'; there are gpipe, 1f1b, interleaved, looped, zb1, zbv");
  bool free = s.schedule == "script",
       many = s.schedule == "interleaved" || s.schedule == "looped" || free;
  int64_t chunks = integer(o, "chunks");
  s.chunks = s.is_v() ? 2 : chunks ? static_cast<int>(chunks) : many && !free ? 2 : 1;
  if (s.chunks < 1 || (s.chunks > 1 && !many && !s.is_v()) || (s.is_v() && chunks && chunks != 2))
    throw orr::Error(ORR_INVALID, "chunks = " + std::to_string(chunks) +
                                      " does not go with schedule '" + s.schedule + "'");
  std::string stages = o->text(o->self, "stages", "auto");
  if (stages != "auto") s.modules = cut(stages, ';');
  int64_t size = integer(o, "size");
  if (!s.modules.empty()) {
    if (static_cast<int>(s.modules.size()) % s.chunks)
      throw orr::Error(ORR_INVALID, std::to_string(s.modules.size()) +
                                        " stages do not make whole rounds of " +
                                        std::to_string(s.chunks) + " chunks a rank");
    int64_t listed = static_cast<int64_t>(s.modules.size()) / s.chunks;
    if (size && size != listed)
      throw orr::Error(ORR_INVALID, "size = " + std::to_string(size) +
                                        ", but the stages listed take " + std::to_string(listed) +
                                        " ranks");
    size = listed;
  }
  s.ranks = static_cast<int>(size ? size : ranks_left);
  return s;
}

class Table {
 public:
  Table(const Shape& shape, int rank, int leaves) : s_(shape), rank_(rank), m_(leaves) {}

  std::vector<orr_cell> cells() {
    if (s_.schedule == "gpipe" || s_.schedule == "looped")
      breadth_first();
    else if (s_.schedule == "1f1b" || s_.schedule == "zb1")
      one_forward_one_backward();
    else if (s_.schedule == "interleaved")
      interleaved();
    else
      zero_bubble_v();
    return std::move(cells_);
  }

 private:
  void add(int kind, int chunk, int leaf) { cells_.push_back({kind, chunk, leaf}); }
  // Returns the number, in the model, of the c-th chunk on this rank.
  int chunk(int c) const {
    return c * s_.ranks + (s_.is_v() && c % 2 ? s_.ranks - 1 - rank_ : rank_);
  }

  void breadth_first() {
    for (int c = 0; c < s_.chunks; ++c)
      for (int i = 0; i < m_; ++i) add(ORR_CELL_FORWARD, chunk(c), i);
    for (int c = s_.chunks; c-- > 0;)
      for (int i = 0; i < m_; ++i) add(ORR_CELL_BACKWARD, chunk(c), i);
  }

  // zb1 puts off as many weight gradients as this stage has time for in the bubble.
  void one_forward_one_backward() {
    bool split = s_.schedule == "zb1";
    int warm = std::min(m_, s_.ranks - 1 - rank_), waiting = split ? rank_ : 0, w = 0;
    for (int i = 0; i < warm; ++i) add(ORR_CELL_FORWARD, rank_, i);
    for (int i = 0; i < m_; ++i) {
      if (warm + i < m_) add(ORR_CELL_FORWARD, rank_, warm + i);
      add(ORR_CELL_BACKWARD, rank_, i);
      if (split && i - w >= waiting) add(ORR_CELL_WEIGHT, rank_, w++);
    }
    for (; split && w < m_; ++w) add(ORR_CELL_WEIGHT, rank_, w);
  }

  // Microbatches form groups, each with as many of them as there are ranks; the last group may be
  // smaller. A group goes through one chunk after the other.
  void interleaved() {
    std::vector<std::pair<int, int>> forward, backward;  // (c, leaf)
    for (int begin = 0; begin < m_; begin += s_.ranks) {
      int end = std::min(m_, begin + s_.ranks);
      for (int c = 0; c < s_.chunks; ++c)
        for (int i = begin; i < end; ++i) {
          forward.emplace_back(c, i);
          backward.emplace_back(s_.chunks - 1 - c, i);
        }
    }
    int all = static_cast<int>(forward.size());
    int warm = std::min(all, (s_.ranks - 1 - rank_) * 2 + (s_.chunks - 1) * s_.ranks);
    if (m_ % s_.ranks) warm = all;  // a smaller last group would wait for itself
    int f = 0;
    auto run_forward = [&] {
      add(ORR_CELL_FORWARD, chunk(forward[f].first), forward[f].second), ++f;
    };
    while (f < warm) run_forward();
    for (auto& [c, i] : backward) {
      if (f < all) run_forward();
      add(ORR_CELL_BACKWARD, chunk(c), i);
    }
  }

  // Simulates all ranks, one time step after another, and keeps the cells of this rank. In each
  // time step a rank does the first thing that is ready from the list at the end of the loop;
  // forward only while it holds the activations of fewer than 2p chunks. With this list a rank
  // idles only in the p - 1 time steps in which the first microbatch comes down.
  void zero_bubble_v() {
    const int p = s_.ranks, chunks = 2 * p;
    struct Row {
      std::vector<int> f = {0, 0}, b = {0, 0}, w = {0, 0};
      int alive = 0;
    };
    std::vector<Row> rows(static_cast<size_t>(p));
    std::vector<std::vector<int>> f_end(static_cast<size_t>(chunks)),
        b_end(static_cast<size_t>(chunks));
    auto chunk_of = [&](int r, int c) { return c ? 2 * p - 1 - r : r; };
    auto done = [&](const std::vector<std::vector<int>>& end, int chunk, int leaf, int now) {
      auto& e = end[static_cast<size_t>(chunk)];
      return leaf < static_cast<int>(e.size()) && e[static_cast<size_t>(leaf)] <= now;
    };
    for (int now = 0, left = 6 * p * m_; left > 0; ++now)
      for (int r = 0; r < p; ++r) {
        Row& row = rows[static_cast<size_t>(r)];
        auto try_backward = [&](int c) {
          int k = chunk_of(r, c), i = row.b[static_cast<size_t>(c)];
          if (i >= m_ || !done(f_end, k, i, now) || (k + 1 < chunks && !done(b_end, k + 1, i, now)))
            return false;
          b_end[static_cast<size_t>(k)].push_back(now + 1), ++row.b[static_cast<size_t>(c)];
          if (r == rank_) add(ORR_CELL_BACKWARD, k, i);
          return true;
        };
        auto try_forward = [&](int c) {
          int k = chunk_of(r, c), i = row.f[static_cast<size_t>(c)];
          int room =
              c ? 2 * p : 2 * p - 1;  // the last place is for the second chunk, which frees others
          if (i >= m_ || row.alive >= room || (k > 0 && !done(f_end, k - 1, i, now))) return false;
          f_end[static_cast<size_t>(k)].push_back(now + 1), ++row.f[static_cast<size_t>(c)],
              ++row.alive;
          if (r == rank_) add(ORR_CELL_FORWARD, k, i);
          return true;
        };
        auto try_weight = [&](int c) {
          int i = row.w[static_cast<size_t>(c)];
          if (i >= row.b[static_cast<size_t>(c)]) return false;
          ++row.w[static_cast<size_t>(c)], --row.alive;
          if (r == rank_) add(ORR_CELL_WEIGHT, chunk_of(r, c), i);
          return true;
        };
        left -= try_backward(0) || try_forward(1) || try_forward(0) || try_backward(1) ||
                try_weight(1) || try_weight(0);
      }
  }

  const Shape& s_;
  int rank_, m_;
  std::vector<orr_cell> cells_;
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_EXACT;
    out->n_options = 4, out->options = kOptions;
    out->provides = "an order of microbatches,stages", out->requires_ = "";
    out->conflicts = "an order of microbatches,stages";
  });
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    Shape s = shape_of(options, edit->ranks_left(program));
    orr::check(edit->axis(program, "pipe", s.ranks));
    std::vector<int32_t> where;
    std::vector<const char*> modules;
    for (int c = 0; c < s.ranks * s.chunks; ++c) where.push_back(s.at(c));
    for (const std::string& m : s.modules) modules.push_back(m.c_str());
    orr::check(edit->stage(program, "pipe", static_cast<int32_t>(where.size()), where.data(),
                           modules.empty() ? nullptr : modules.data()));
  });
}

orr_status* schedule(void*, const orr_options* options, int32_t coordinate, int32_t ranks,
                     int32_t leaves, orr_cell* out, int32_t capacity, int32_t* n) {
  return orr::guard([&] {
    Shape s = shape_of(options, ranks);
    std::vector<orr_cell> cells = Table(s, coordinate, leaves).cells();
    *n = static_cast<int32_t>(cells.size());
    std::copy_n(cells.begin(), std::min(*n, capacity), out);
  });
}

constexpr orr_strategy_api kApi = [] {
  orr_strategy_api table = orr::strategy_table(describe, transform, orr::predict_messages);
  table.schedule = schedule;
  return table;
}();

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "pipeline", "0.1.0", "pipeline parallelism: stages, six schedules",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
