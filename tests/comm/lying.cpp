// SPDX-License-Identifier: Apache-2.0
//
// A backend that forms no world, or says that it has formed one of 5 ranks: ORRERY_TEST_LIE
// chooses.
#include <orrery/sdk/comm.hpp>

#include <cstdlib>
#include <memory>

namespace {

struct Five {
  int rank() const { return 0; }
  int size() const { return 5; }
  uint64_t bytes_sent() const { return 0; }
  std::unique_ptr<Five> split(int32_t, int32_t) { return nullptr; }
};

// Nobody destroys a world that the core refuses, because destroying may wait for other ranks. This
// keeps it reachable, so that it is no leak (volatile, because nothing reads it).
Five* volatile formed = nullptr;

std::unique_ptr<Five> form_world(const orr_comm_boot&) {
  const char* lie = std::getenv("ORRERY_TEST_LIE");
  if (std::string_view(lie ? lie : "") == "none") return nullptr;
  formed = new Five;
  return std::unique_ptr<Five>(formed);
}

int32_t probe(void*, orr_comm_caps* out, char*, uint32_t) {
  out->ops = uint64_t{1} << ORR_COLL_SEND | uint64_t{1} << ORR_COLL_RECV;
  return 1;
}

constexpr orr_comm_api table = orr::comm_table<Five, form_world>(probe);

}  // namespace

ORR_PLUGIN(ORR_KIND_COMM, "lying", "1.0.0", "A world that is not what was asked for",
           orr::comm_entry<table>, 1, {{"comm", 1, 1}})
