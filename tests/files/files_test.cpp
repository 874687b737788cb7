// SPDX-License-Identifier: Apache-2.0
//
// Files that people name: whatever they are and hold, they are read, or refused with one error that
// names them; nothing hangs and nothing is allocated for what they claim.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <orrery/sdk/plugin.hpp>
#include <random>

#include "base/error.h"
#include "base/text_file.h"
#include "launch/hosts_file.h"
#include "plan/machine_model.h"
#include "strategy/server/arrivals.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() {
    std::string name = (fs::temp_directory_path() / "orrery-files-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string write(const std::string& text) const {
    std::ofstream(path(), std::ios::binary) << text;
    return path();
  }
  std::string path() const { return (folder_ / "file").string(); }

  // What the Error that it throws, the core's or a plugin's, says, "" if it throws none.
  static std::string refusal(const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& e) {
      return e.what();
    } catch (const orr::Error& e) {
      return e.what();
    }
    return "";
  }

  // Random damage to a good file: it is refused by its name, or read.
  void damage(const std::string& good, const std::function<void(const std::string&)>& read) const {
    std::mt19937 random(7);
    auto upto = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
    const std::vector<std::string> bits = {"-",  "1e308", "99999999999999999999", "\n", "{", "[",
                                           "\"", " ",     std::string(1, '\0'),   "=",  "0", "#"};
    for (int i = 0; i < 700; ++i) {
      std::string bad = good;
      for (size_t edits = 1 + upto(3); edits-- > 0;) {
        const size_t at = upto(bad.size());
        const size_t kind = upto(3);
        if (kind == 0) bad = bad.substr(0, at);
        if (kind == 1) bad.insert(at, bits[upto(bits.size() - 1)]);
        if (kind == 2 && at < bad.size()) bad[at] = static_cast<char>(upto(255));
        if (kind == 3) bad.insert(at, bad.substr(upto(bad.size()), 1 + upto(20)));
      }
      write(bad);
      const std::string why = refusal([&] { read(path()); });
      EXPECT_TRUE(why.empty() || why.find(path()) != std::string::npos) << why << " of: " << bad;
    }
  }

  fs::path folder_;
};

void read(const std::string& path) { read_text(path, path, ORR_INVALID, 100); }

TEST_F(Files, OnlyRegularOnesAreRead) {
  EXPECT_EQ(read_text(write("abc"), "x", ORR_INVALID, 100), "abc");
  EXPECT_THAT(refusal([&] { read(folder_.string()); }), HasSubstr("is a directory"));
  EXPECT_THAT(refusal([&] { read("/dev/zero"); }), HasSubstr("no regular file"));
  EXPECT_THAT(refusal([&] { read((folder_ / "none").string()); }), HasSubstr("No such file"));
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { read(pipe); }), HasSubstr("no regular file"));
}

TEST_F(Files, NoMoreThanAsked) {
  EXPECT_THAT(refusal([&] { read(write(std::string(101, 'x'))); }),
              HasSubstr("has 101 bytes, more than the 100"));
  fs::resize_file(write(""), uint64_t{1} << 42);  // a hole
  EXPECT_THAT(refusal([&] { read_text(path(), path(), ORR_INVALID); }), HasSubstr("more than the"));
}

TEST_F(Files, Hosts) {
  const std::string good = "a slots=2\nb\n# none\nc.d slots=12 # the last\n";
  EXPECT_EQ(read_hosts(write(good)).size(), 3u);
  EXPECT_THAT(refusal([&] { read_hosts(write(std::string("a\0b\n", 4))); }), HasSubstr(":1: "));
  std::string many;
  for (int i = 0; i < 200'000; ++i) many += fmt::format("host{} slots=1024\n", i);
  EXPECT_THAT(refusal([&] { read_hosts(write(many)); }), HasSubstr(":2: 2048 ranks with this one"));
  damage(good, [](const std::string& file) { read_hosts(file); });
}

TEST_F(Files, Machines) {
  const std::string good = R"({"matrix_flops": {"f32": 1e11}, "vector_flops": 1e10,
    "memory_bandwidth": 1e10, "cache_bandwidth": 5e10, "cache_bytes": 2e6, "launch_seconds": 1e-6,
    "ranks_per_host": 8, "inside": {"latency": 2e-6, "bandwidth": 5e9},
    "between": {"latency": 1e-5, "bandwidth": 1.25e9}})";
  EXPECT_EQ(machine_of(write(good)).ranks_per_host, 8);
  for (const char* ranks : {"1e300", "0.5", "-1", "\"x\""}) {
    std::string bad = good;
    bad.replace(bad.find("8, \"inside"), 1, ranks);
    EXPECT_THAT(refusal([&] { machine_of(write(bad)); }), HasSubstr("ranks_per_host")) << ranks;
  }
  EXPECT_THAT(refusal([&] { machine_of(write(std::string(1 << 19, '['))); }), HasSubstr(path()));
  damage(good, [](const std::string& file) { machine_of(file); });
}

TEST_F(Files, ArrivalLogs) {
  using namespace server;
  {
    ArrivalLog log(path(), "model");
    log.begin(0);
    for (int worker : {0, 1, 0, 1}) log.add({Arrival::push, worker, 1, 2});
    for (int worker : {0, 1}) log.add({Arrival::end, worker, 3, 4});
  }
  const std::string good = read_text(path(), path(), ORR_INVALID);
  Replay(path(), "model", 2).begin(0);
  {
    ArrivalLog log(path(), "model");
    log.begin(0);
    log.add({Arrival::push, -5, 1, 2});
  }
  EXPECT_THAT(refusal([&] { Replay(path(), "model", 2); }), HasSubstr("damaged at line 3"));
  damage(good, [](const std::string& file) { Replay(file, "model", 2); });
}

}  // namespace
}  // namespace orrery
