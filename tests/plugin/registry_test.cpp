// SPDX-License-Identifier: Apache-2.0
//
// Look-up by kind and name, the order of the search path, and tables with holes.
#include "plugin/registry.h"

#include <sys/stat.h>

#include <algorithm>

#include "fixture.h"
#include "plugin/host.h"

namespace orrery {
namespace {

class RegistryTest : public PluginDirectory {
 protected:
  // A registry of its own for each test: found files of one do not meet those of another.
  Registry registry_;

  std::string refusal_of(const std::filesystem::path& path) const {
    for (const PluginFile& file : registry_.files())
      if (file.path == std::filesystem::canonical(path)) return file.refusal;
    return "not listed";
  }
};

TEST_F(RegistryTest, FillsHolesOfShortTables) {
  copy("orrery-test-short.so", "a.so");
  registry_.add(dir_);
  const orr_kernel_api& kernel = registry_.kernel("short");
  EXPECT_EQ(kernel.size, sizeof(orr_kernel_api));
  EXPECT_EQ(kernel.probe(kernel.self, nullptr, 0), 7);
  orr_support support{};
  support.score = 5;
  kernel.supports(kernel.self, nullptr, &support);
  EXPECT_EQ(support.score, 0);
  EXPECT_STREQ(support.reason, "this plugin does not implement 'supports'");
  std::string text = error_of(ORR_UNIMPLEMENTED, [&] {
    check(kernel.launch(nullptr, nullptr, nullptr, nullptr, nullptr), "matmul");
  });
  EXPECT_EQ(text, "matmul: this plugin does not implement 'launch' [kernel 'short', launch]");
  kernel.release(kernel.self, nullptr);
  const orr_observer_api& observer = registry_.observer("short");
  error_of(ORR_UNIMPLEMENTED, [&] { check(observer.start(observer.self, nullptr)); });
  observer.stop(observer.self);
}

TEST_F(RegistryTest, LeavesNoSlotEmpty) {
  copy("orrery-test-short.so", "a.so");
  registry_.add(dir_);
  // After size, self and device every slot is a function, but for claim, which may be left out.
  const orr_kernel_api& table = registry_.kernel("short");
  auto slots = reinterpret_cast<void* const*>(&table.probe);
  for (size_t i = 0;
       i < (offsetof(orr_kernel_api, claim) - offsetof(orr_kernel_api, probe)) / sizeof(void*); ++i)
    EXPECT_NE(slots[i], nullptr) << "slot " << i;
  EXPECT_EQ(table.claim, nullptr);
}

TEST_F(RegistryTest, RefusesInterfaceVersionsItDoesNotSpeak) {
  copy("orrery-test-short.so", "a.so");
  registry_.add(dir_);
  std::string text = error_of(ORR_UNAVAILABLE, [&] { registry_.strategy("short"); });
  EXPECT_NE(text.find("it serves strategy/2 to strategy/3"), std::string::npos) << text;
}

TEST_F(RegistryTest, OffersNearestName) {
  copy("orrery-test-short.so", "a.so");
  registry_.add(dir_);
  std::string text = error_of(ORR_INVALID, [&] { registry_.kernel("shrot"); });
  EXPECT_EQ(text.find("no plugin provides kernel 'shrot' (did you mean 'short'?)"), 0u) << text;
  text = error_of(ORR_INVALID, [&] { registry_.comm("short"); });
  EXPECT_NE(text.find("kind: it is a kernel+strategy+observer plugin, not comm; name one of: "),
            std::string::npos)
      << text;
}

TEST_F(RegistryTest, ReportsBrokenPluginAsBroken) {
  auto file = copy("orrery-test-short.so", "orrery-kernel-mine.so");
  std::filesystem::resize_file(file, 600);
  registry_.add(dir_);
  std::string text = error_of(ORR_UNAVAILABLE, [&] { registry_.kernel("mine"); });
  EXPECT_EQ(text.find("kernel 'mine': plugin " + file.string() + ": file: is truncated"), 0u)
      << text;
}

TEST_F(RegistryTest, RefusesWorldWritablePlugin) {
  auto file = copy("orrery-test-short.so", "a.so");
  chmod(file.c_str(), 0666);
  registry_.add(dir_);
  std::string text = error_of(ORR_UNAVAILABLE, [&] { registry_.kernel("short"); });
  EXPECT_NE(text.find("writable by everyone"), std::string::npos) << text;
}

TEST_F(RegistryTest, FirstInSearchOrderHidesTheOther) {
  std::filesystem::create_directory(dir_ / "one");
  std::filesystem::create_directory(dir_ / "two");
  auto one = copy("orrery-test-short.so", "one/a.so"),
       two = copy("orrery-test-short.so", "two/a.so");
  registry_.add(dir_ / "two");
  registry_.add(dir_ / "one");  // later additions come first
  EXPECT_EQ(refusal_of(one), "");
  EXPECT_EQ(refusal_of(two),
            "hidden by " + one.string() + ", which comes first in the search path");
  auto names = registry_.names(ORR_KIND_KERNEL);
  EXPECT_EQ(std::count(names.begin(), names.end(), "short"), 1);
}

TEST_F(RegistryTest, ListsObjectsThatAreNoPlugins) {
  auto file = copy("orrery-test-none.so", "a.so");
  registry_.add(file);
  EXPECT_NE(refusal_of(file).find("not an Orrery plugin"), std::string::npos);
}

TEST_F(RegistryTest, RefusesPathThatDoesNotExist) {
  std::string text = error_of(ORR_INVALID, [&] { registry_.add(dir_ / "nowhere"); });
  EXPECT_NE(text.find("does not exist"), std::string::npos) << text;
}

TEST_F(RegistryTest, ServesHostDeviceItself) {
  const orr_device_api& device = registry_.device("host");
  orr_device_facts facts{};
  check(device.facts(device.self, &facts));
  EXPECT_STREQ(facts.name, "host");
  EXPECT_GT(facts.memory, 0u);
}

}  // namespace
}  // namespace orrery
