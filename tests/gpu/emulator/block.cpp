// SPDX-License-Identifier: Apache-2.0
#include "block.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

extern char __start_emulated_shared[] __attribute__((weak));
extern char __stop_emulated_shared[] __attribute__((weak));

namespace emulator {

uint3 block_index;
dim3 block_extent, grid_extent;
char* dynamic_shared;
bool has_warpgroups = true;

namespace {

constexpr size_t kStack = 128 << 10, kShared = 227 << 10, kPage = 4096;

struct Copy {
  void* to;
  const void* from;
  int bytes;
};

struct Thread : Fiber {
  ucontext_t start{};
  jmp_buf place{};
  bool started = false, ended = false;
  std::deque<std::vector<Copy>> copies{1};  // in batches; the last has not ended
};

// The lanes of one mask on their way to the same collective. Two rounds of values: a lane may be
// one collective ahead of another, never two.
struct Meeting {
  unsigned mask, arrived = 0;
  unsigned round = 0;
  alignas(16) char values[2][32][kShown];
  std::vector<Thread*> waiting;
};

struct Machine {
  std::mutex mutex;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<std::deque<Thread*>> ready;  // of each warp
  std::vector<size_t> order;               // of warps: the first that has a ready thread runs
  std::vector<Thread*> at_barrier;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings;  // of each warp
  Thread* current = nullptr;
  size_t alive = 0;
  jmp_buf scheduler{};
  ucontext_t main{};
  Body body = nullptr;
  void** arguments = nullptr;
  std::string fault;
  uint64_t seed = 0;
  std::mt19937_64 random;
  char* shared_end = nullptr;  // a page follows that nobody may touch
};

Machine& machine() {
  static Machine& m = *new Machine;
  return m;
}

std::map<std::string, const Kernel*>& kernels() {
  static auto& all = *new std::map<std::string, const Kernel*>;
  return all;
}

// Back to the scheduler; returns when this fiber is chosen again.
void leave() {
  Machine& m = machine();
  if (_setjmp(m.current->place) == 0) _longjmp(m.scheduler, 1);
}

void wake(std::vector<Thread*>& threads) {
  Machine& m = machine();
  if (m.seed) std::shuffle(threads.begin(), threads.end(), m.random);
  for (Thread* t : threads) m.ready[size_t(t->warp)].push_back(t);
  threads.clear();
}

[[noreturn]] void fail(const std::string& what) {
  machine().fault = what;
  _longjmp(machine().scheduler, 1);
}

std::string place_of(const Thread& t) {
  return "thread " + std::to_string(t.index.x) + "," + std::to_string(t.index.y) + " of block " +
         std::to_string(block_index.x) + "," + std::to_string(block_index.y) + "," +
         std::to_string(block_index.z);
}

void release_barrier() {
  Machine& m = machine();
  if (m.alive > 0 && m.at_barrier.size() == m.alive) wake(m.at_barrier);
}

// A fiber runs one block's thread after another and is never unwound.
void live() {
  for (;;) {
    Machine& m = machine();
    m.body(m.arguments);
    m.current->ended = true;
    --m.alive;
    release_barrier();
    leave();
  }
}

char* pages(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::runtime_error("emulator: no memory");
  return static_cast<char*>(at);
}

void make_thread(Thread& t) {
  char* stack = pages(kStack);
  mprotect(stack, kPage, PROT_NONE);  // stacks grow down
  getcontext(&t.start);
  t.start.uc_stack.ss_sp = stack;
  t.start.uc_stack.ss_size = kStack;
  t.start.uc_link = nullptr;
  makecontext(&t.start, live, 0);
}

char* make_shared() {
  constexpr size_t bytes = (kShared + kPage - 1) / kPage * kPage;
  char* at = pages(bytes + kPage);
  mprotect(at + bytes, kPage, PROT_NONE);
  return at + bytes;
}

void resume(Thread& t) {
  Machine& m = machine();
  m.current = &t;
  if (_setjmp(m.scheduler) != 0) return;
  if (t.started) _longjmp(t.place, 1);
  t.started = true;
  setcontext(&t.start);
}

void poison_shared() {
  if (__start_emulated_shared)
    std::memset(__start_emulated_shared, 0xff,
                size_t(__stop_emulated_shared - __start_emulated_shared));
  std::memset(dynamic_shared, 0xff, size_t(machine().shared_end - dynamic_shared));
}

void begin_block(size_t threads) {
  Machine& m = machine();
  while (m.threads.size() < threads) make_thread(*m.threads.emplace_back(new Thread));
  const size_t warps = (threads + 31) / 32;
  m.meetings.clear();
  m.meetings.resize(warps);
  m.ready.resize(warps);
  m.order.resize(warps);
  std::iota(m.order.begin(), m.order.end(), 0);
  if (m.seed) std::shuffle(m.order.begin(), m.order.end(), m.random);
  std::vector<Thread*> all;
  for (size_t i = 0; i < threads; ++i) {
    Thread& t = *m.threads[i];
    const unsigned n = unsigned(i), x = block_extent.x, y = block_extent.y;
    t.index = {n % x, n / x % y, n / x / y};
    t.lane = int(i % 32);
    t.warp = int(i / 32);
    t.ended = false;
    t.copies.assign(1, {});
    all.push_back(&t);
  }
  m.alive = threads;
  wake(all);
}

// The next thread to run, or null. One warp runs as far as it can before the next one does; a seed
// shuffles the warps now and then.
Thread* next_thread() {
  Machine& m = machine();
  if (m.seed && m.random() % 128 == 0) std::shuffle(m.order.begin(), m.order.end(), m.random);
  for (size_t warp : m.order) {
    if (m.ready[warp].empty()) continue;
    Thread* next = m.ready[warp].front();
    m.ready[warp].pop_front();
    return next;
  }
  return nullptr;
}

void run_block(size_t threads) {
  Machine& m = machine();
  begin_block(threads);
  while (m.fault.empty())
    if (Thread* next = next_thread())
      resume(*next);
    else
      break;
  if (m.fault.empty() && m.alive > 0)
    m.fault = std::to_string(m.alive) + " threads wait for ever, " +
              std::to_string(m.at_barrier.size()) + " of them at a barrier, in block " +
              std::to_string(block_index.x) + "," + std::to_string(block_index.y);
  if (m.fault.empty()) return;
  // Fibers in the middle of a kernel cannot be reused.
  for (auto& t : m.threads)
    if (t->started) static_cast<void>(t.release());
  m.threads.clear();
  for (auto& ready : m.ready) ready.clear();
  m.at_barrier.clear();
}

Meeting& meeting_of(unsigned mask) {
  auto& warp = machine().meetings[size_t(machine().current->warp)];
  for (auto& meeting : warp)
    if (meeting->mask == mask) return *meeting;
  warp.push_back(std::make_unique<Meeting>());
  warp.back()->mask = mask;
  return *warp.back();
}

void land(const Copy& c) {
  std::memset(c.to, 0, 16);
  if (c.bytes) std::memcpy(c.to, c.from, size_t(c.bytes));
}

unsigned existing_lanes(int warp) {
  const size_t threads = size_t(block_extent.x) * block_extent.y * block_extent.z;
  const size_t lanes = std::min<size_t>(32, threads - size_t(warp) * 32);
  return lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
}

}  // namespace

Fiber& self() { return *machine().current; }

void barrier() {
  Machine& m = machine();
  m.at_barrier.push_back(m.current);
  release_barrier();
  leave();
}

const void* exchange(unsigned mask, const void* value, size_t bytes, int source) {
  Thread& me = *machine().current;
  if (!(mask >> me.lane & 1)) fail(place_of(me) + " is outside of its own mask");
  if (!(mask >> source & 1) && value) fail(place_of(me) + " reads a lane outside of the mask");
  mask &= existing_lanes(me.warp);
  Meeting& meeting = meeting_of(mask);
  const unsigned round = meeting.round;
  if (bytes) std::memcpy(meeting.values[round & 1][me.lane], value, bytes);
  meeting.arrived |= 1u << me.lane;
  meeting.waiting.push_back(&me);
  if (meeting.arrived == mask) {
    meeting.arrived = 0;
    ++meeting.round;
    wake(meeting.waiting);
  }
  leave();
  return meeting.values[round & 1][source];
}

void copy_async(void* to, const void* from, int bytes) {
  Thread& me = *machine().current;
  if (reinterpret_cast<uintptr_t>(to) % 16 || (bytes && reinterpret_cast<uintptr_t>(from) % 16))
    fail(place_of(me) + " copies what is not aligned to 16 bytes");
  const Copy copy{to, from, bytes};
  if (machine().seed && machine().random() % 2)
    land(copy);
  else
    me.copies.back().push_back(copy);
}

void end_copies() { machine().current->copies.emplace_back(); }

void wait_copies(int others) {
  auto& batches = machine().current->copies;
  if (others < 0) end_copies();
  for (; batches.size() > size_t(std::max(others, 0)) + 1; batches.pop_front())
    for (const Copy& c : batches.front()) land(c);
}

NamedKernel::NamedKernel(const char* name, int threads, size_t argument_bytes, Body body)
    : Kernel{name, threads, argument_bytes, body} {
  kernels()[name] = this;
}

const Kernel* find(const std::string& name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : found->second;
}

void set_order(uint64_t seed) {
  machine().seed = seed;
  machine().random.seed(seed);
}

void run(const Kernel& kernel, dim3 grid, dim3 block, size_t shared_bytes, void** arguments) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  const size_t threads = size_t(block.x) * block.y * block.z;
  const std::string name = std::string("emulator: ") + kernel.name + ": ";
  if (threads == 0 || threads > size_t(kernel.threads))
    throw std::runtime_error(name + std::to_string(threads) + " threads in a block");
  if (shared_bytes > kShared || grid.y > 65535 || grid.z > 65535)
    throw std::runtime_error(name + "too much shared memory or too large a grid");
  if (!m.shared_end) m.shared_end = make_shared();
  dynamic_shared = m.shared_end - (shared_bytes + 15) / 16 * 16;
  grid_extent = grid;
  block_extent = block;
  m.body = kernel.body;
  m.arguments = arguments;
  std::vector<size_t> order(size_t(grid.x) * grid.y * grid.z);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (m.seed) std::shuffle(order.begin(), order.end(), m.random);
  for (size_t i : order) {
    const unsigned n = unsigned(i);
    block_index = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
    poison_shared();
    run_block(threads);
    if (!m.fault.empty()) throw std::runtime_error(name + std::exchange(m.fault, ""));
  }
}

}  // namespace emulator
