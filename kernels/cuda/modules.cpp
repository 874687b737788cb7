// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

#include <sched.h>

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <orrery/sdk/plugin.hpp>

#include "compiler.h"
#include "device.h"
#include "driver.h"
#include "start_cost.h"

namespace orr_cuda {
namespace {

using Task = std::packaged_task<std::string()>;

// The CPUs of this process: the thread that asks for modules may later keep to one of them.
const cpu_set_t cpus_at_load = [] {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}();

// Threads that are there while there is something to compile.
class Compilers {
 public:
  ~Compilers() {
    {
      const std::lock_guard lock(mutex_);
      waiting_.clear();
    }
    join();
  }

  std::shared_future<std::string> add(const std::string& source, Task task) {
    std::shared_future<std::string> image = task.get_future();
    const std::lock_guard lock(mutex_);
    waiting_.push_back({source, std::move(task)});
    if (running_ == 0) {
      join();  // they have nothing left to do
      began_ = Clock::now();
    }
    if (running_ < std::max(1, orr::host->threads())) {
      ++running_;
      threads_.emplace_back([this] { work(); });
    }
    return image;
  }

  // Somebody waits for it: it is the next one.
  void hurry(const std::string& source) {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(waiting_, source, &Waiting::source);
    if (at != waiting_.end()) std::rotate(waiting_.begin(), at, at + 1);
  }

 private:
  struct Waiting {
    std::string source;
    Task task;
  };

  void work() {
    sched_setaffinity(0, sizeof cpus_at_load, &cpus_at_load);
    while (std::optional<Task> task = next()) (*task)();
  }

  std::optional<Task> next() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      if (--running_ == 0) start_cost().compiling(since(began_));
      return std::nullopt;
    }
    Task task = std::move(waiting_.front().task);
    waiting_.pop_front();
    return task;
  }

  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  std::vector<std::thread> threads_;
  int running_ = 0;
  Clock::time_point began_;
};

struct Wanted {
  std::shared_future<std::string> image;
  CUmodule module = nullptr;
};

std::map<std::string, Wanted>& all_wanted() {
  static std::map<std::string, Wanted> all;
  return all;
}

// Sources that may be needed, each once, however often plans ask about them. [any thread]
class Expected {
 public:
  void add(const std::string& source) {
    const std::lock_guard lock(mutex_);
    sources_.insert(source);
  }
  std::set<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(sources_, {});
  }

 private:
  std::mutex mutex_;
  std::set<std::string> sources_;
};
Expected& expected() {
  static Expected all;
  return all;
}

// Those of recordings that have not been loaded since.
std::vector<std::string>& requested() {
  static std::vector<std::string> all;
  return all;
}

Compilers& compilers() {
  static Compilers all;
  return all;
}

Wanted& begun(const std::string& source) {
  const auto [at, fresh] = all_wanted().try_emplace(source);
  if (!fresh) return at->second;
  const int device = opened().arch, arch = newest_known(device);  // opens the library, too
  Task task([=] { return image_of(source, arch, arch != device); });
  at->second.image = compilers().add(source, std::move(task));
  return at->second;
}

}  // namespace

void expect_module(const std::string& source) { expected().add(source); }

CUmodule module_of(const std::string& source) {
  Wanted& w = begun(source);
  for (const std::string& other : expected().take()) begun(other);
  if (w.module) return w.module;
  compilers().hurry(source);  // plans may have asked about hundreds that stand before it
  const std::string& image = w.image.get();
  ORR_DRIVER(cuModuleLoadData, &w.module, image.data());
  return w.module;
}

void request_module(const std::string& source) {
  begun(source);
  requested().push_back(source);
}

void load_requested() {
  for (const std::string& source : std::exchange(requested(), {})) module_of(source);
  start_cost().tell();
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  ORR_DRIVER(cuModuleGetFunction, &found, module, name);
  return found;
}

}  // namespace orr_cuda
