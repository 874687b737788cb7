// SPDX-License-Identifier: Apache-2.0
//
// Reading a descriptor from a file, and every way in which a file is refused.
#include "plugin/elf.h"

#include <elf.h>
#include <sys/stat.h>

#include "fixture.h"
#include "plugin/loader.h"

namespace orrery {
namespace {

class Elf : public PluginDirectory {
 protected:
  static std::string refusal(const std::filesystem::path& file) {
    return error_of(ORR_UNAVAILABLE, [&] { read_descriptor(file); });
  }
  static void expect_refusal(const std::filesystem::path& file, const std::string& part) {
    std::string text = refusal(file);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(Elf, ReadsDescriptorWithoutLoading) {
  orr_plugin plugin = read_descriptor(copy("orrery-test-short.so", "a.so"));
  EXPECT_STREQ(plugin.name, "short");
  EXPECT_STREQ(plugin.version, "0.9.0");
  EXPECT_EQ(plugin.kinds, uint32_t(ORR_KIND_KERNEL | ORR_KIND_OBSERVER | ORR_KIND_STRATEGY));
  EXPECT_EQ(plugin.n_interfaces, 3u);
  EXPECT_EQ(plugin.entry, nullptr);
}

TEST_F(Elf, RefusesTruncatedFileAtEveryLength) {
  auto file = copy("orrery-test-short.so", "a.so");
  const auto whole = std::filesystem::file_size(file);
  for (auto length :
       {whole - 1, whole / 2, whole / 4, uintmax_t(64), uintmax_t(20), uintmax_t(3)}) {
    std::filesystem::resize_file(file, length);
    std::string text = refusal(file);
    EXPECT_TRUE(text.find("truncated") != std::string::npos ||
                text.find("not a shared object") != std::string::npos)
        << length << ": " << text;
  }
}

TEST_F(Elf, RefusesWrongMachine) {
  auto file = copy("orrery-test-short.so", "a.so");
  overwrite(file, offsetof(Elf64_Ehdr, e_machine), std::string("\xf3\x00", 2));
  expect_refusal(file, "another machine (ELF class 2, machine 243;");
}

TEST_F(Elf, RefusesTextFile) {
  std::ofstream(dir_ / "a.so") << "not a plugin, only text\n";
  expect_refusal(dir_ / "a.so", "no ELF header");
}

TEST_F(Elf, RefusesObjectWithoutSection) {
  expect_refusal(copy("orrery-test-none.so", "a.so"), "has no section '.orrery_plugin'");
}

TEST_F(Elf, RefusesOtherBootstrap) {
  auto file = copy("orrery-test-short.so", "a.so");
  overwrite(file, descriptor_at(file) + long(offsetof(orr_plugin, bootstrap)), "\x07");
  expect_refusal(file, "speaks plugin bootstrap 7 and this program speaks 1");
}

TEST_F(Elf, RefusesWrongMagic) {
  auto file = copy("orrery-test-short.so", "a.so");
  overwrite(file, descriptor_at(file), "X");
  expect_refusal(file, "wrong magic");
}

TEST_F(Elf, RefusesShortDescriptor) {
  auto file = copy("orrery-test-short.so", "a.so");
  overwrite(file, descriptor_at(file) + long(offsetof(orr_plugin, size)),
            std::string("\x10\x00", 2));
  expect_refusal(file, "says 16 bytes");
}

TEST_F(Elf, ListsWhatOthersSee) {
  EXPECT_EQ(exported_symbols(copy("orrery-test-none.so", "a.so")),
            std::vector<std::string>{"orrery_not_a_plugin"});
}

TEST_F(Elf, TerminatesNamesThatFillTheirArray) {
  auto file = copy("orrery-test-short.so", "a.so");
  overwrite(file, descriptor_at(file) + long(offsetof(orr_plugin, name)), std::string(32, 'n'));
  EXPECT_EQ(read_descriptor(file).name, std::string(31, 'n'));
}

TEST_F(Elf, TrustsOnlyWhatOthersCannotWrite) {
  auto file = copy("orrery-test-short.so", "a.so");
  EXPECT_NO_THROW(check_trusted(file));
  chmod(file.c_str(), 0666);
  std::string text = error_of(ORR_UNAVAILABLE, [&] { check_trusted(file); });
  EXPECT_EQ(text, "the file is writable by everyone; run chmod o-w " + file.string());
  chmod(file.c_str(), 0644);
  chmod(dir_.c_str(), 0777);
  text = error_of(ORR_UNAVAILABLE, [&] { check_trusted(file); });
  EXPECT_EQ(text, "its directory is writable by everyone; run chmod o-w " + dir_.string());
}

}  // namespace
}  // namespace orrery
