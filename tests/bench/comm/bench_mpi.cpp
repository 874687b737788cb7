// SPDX-License-Identifier: Apache-2.0
//
// An MPI library's own calls in a plain loop, as a contestant: what bench_comm does, in the same
// sizes.
//
//   mpirun -n RANKS bench_mpi_<library> PIPES MOST
#include "../../../plugins/comm/mpi/library.h"

#include <vector>

#include "pages.h"
#include "requests.h"

namespace {

class Bench {
 public:
  explicit Bench(size_t most) : a_(private_memory(most)), b_(private_memory(most)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const { return rank_; }

  double microseconds(const Request& r) {
    const int n = static_cast<int>(r.bytes / 4);
    counts_.clear(), begins_.clear();
    for (long q = 0; q < ranks_; ++q) {
      begins_.push_back(static_cast<int>(long{n} * q / ranks_));
      counts_.push_back(static_cast<int>(long{n} * (q + 1) / ranks_) - begins_.back());
    }
    call(r.op, n);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < r.calls; ++i) call(r.op, n);
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) * 1e6 / r.calls;
  }

 private:
  void call(const std::string& op, int n) {
    if (op == "all_reduce")
      MPI_Allreduce(MPI_IN_PLACE, a_.get(), n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else if (op == "reduce_scatter")
      MPI_Reduce_scatter(MPI_IN_PLACE, a_.get(), counts_.data(), MPI_FLOAT, MPI_SUM,
                         MPI_COMM_WORLD);
    else if (op == "all_gather")
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, a_.get(), counts_.data(), begins_.data(),
                     MPI_FLOAT, MPI_COMM_WORLD);
    else
      MPI_Sendrecv(a_.get(), n, MPI_FLOAT, (rank_ + 1) % ranks_, 0, b_.get(), n, MPI_FLOAT,
                   (rank_ + ranks_ - 1) % ranks_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  int rank_ = 0, ranks_ = 1;
  Pages a_, b_;
  std::vector<int> counts_, begins_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    Bench bench(std::stoul(argv[2]));
    Requests requests(argv[1], bench.rank());
    for (Request r; requests.next(r);) requests.answer(bench.microseconds(r));
  }
  MPI_Finalize();
}
