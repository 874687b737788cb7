// SPDX-License-Identifier: Apache-2.0
//
// What all communicators of one world share: the library itself, one poison (after a lost peer none
// can be trusted), and the notes by which ranks ask each other whether they are still there. Any
// thread may call; one at a time is inside MPI.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mpi_header.h"

namespace mpi {

class Family {
 public:
  // Initialises MPI and checks that its world is the one of `boot`. Throws orr::Error.
  explicit Family(const orr_comm_boot& boot);
  // Ends MPI together with the peers, unless the process is failing.
  ~Family();
  Family(const Family&) = delete;

  const orr_comm_boot& boot() const { return boot_; }
  int rank() const { return boot_.rank; }
  int size() const { return boot_.world_size; }
  bool has_own_cpu() const { return has_own_cpu_; }
  int largest_tag() const { return largest_tag_; }
  // Whether the world is dead or this process is about to end for another reason.
  bool failing() const;

  // Kills the world with this reason, here and on the peers, unless it is dead already.
  void poison(int32_t code, const std::string& text);
  // Throws when the world is dead.
  void check_alive() const;
  // poison, then throw it.
  [[noreturn]] void die(int32_t code, const std::string& text);

  // Held around every call into MPI.
  std::mutex& inside() { return inside_; }
  // Takes the notes that have come. REQUIRES: inside.
  void listen();
  // Asks all ranks whether they wait too; the answers come by listen. REQUIRES: inside.
  void ask_all();
  // The ranks that have not answered since.
  std::vector<int> silent() const;

 private:
  struct Note {
    int32_t kind, code;
    char text[1016];
  };
  struct Outgoing {
    Note note;
    MPI_Request request;
  };
  void check_world();
  void open_notes();
  void await_notes();
  void tell(int rank, int32_t kind, int32_t code, const std::string& text);
  bool told();
  bool set_poison(int32_t code, const std::string& text);
  bool part_in_order();

  orr_comm_boot boot_;
  std::string job_;
  bool has_own_cpu_ = false;
  int largest_tag_ = 0;

  mutable std::mutex poison_mutex_;
  std::atomic<bool> poisoned_{false};
  int32_t code_ = 0;
  std::string text_;

  std::mutex inside_;
  MPI_Comm notes_ = MPI_COMM_NULL;
  Note incoming_{};
  MPI_Request awaited_ = MPI_REQUEST_NULL;
  std::list<Outgoing> outgoing_;
  std::vector<bool> answered_;
};

// Throws orr::Error with the library's text if `code` is no success.
void check_mpi(int code, const char* what);

}  // namespace mpi
