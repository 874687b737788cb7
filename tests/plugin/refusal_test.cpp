// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a plugin that the user named is refused: with its path, the stage, the reason
// and what to do. The stages "file", "name" and "kind" come before any code of the plugin has run.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

#include "fixture.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

using Path = std::filesystem::path;

struct Refused {
  const char* name;
  std::function<void(const Path&)> spoil;
  const char *stage, *reason, *fix;
};

void PrintTo(const Refused& r, std::ostream* out) { *out << r.name; }

class Refusals : public PluginDirectory, public ::testing::WithParamInterface<Refused> {};

// A name in the file's tables of strings becomes another of the same length.
void rename_in(const Path& file, const std::string& from, const std::string& to) {
  std::ifstream in(file, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(in)), {});
  const size_t at = all.find(std::string(1, '\0') + from + std::string(1, '\0'));
  ASSERT_NE(at, std::string::npos);
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(long(at) + 1);
  out << to;
}

struct Descriptor : PluginDirectory {
  using PluginDirectory::overwrite;
  static void set(const Path& file, size_t offset, const std::string& bytes) {
    overwrite(file, descriptor_at(file) + long(offset), bytes);
  }
};

std::string number(uint32_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

const Refused all[] = {
    {"truncated", [](const Path& p) { std::filesystem::resize_file(p, 700); }, "file",
     "is truncated", "copy it again"},
    {"text", [](const Path& p) { std::ofstream(p) << "not a plugin"; }, "file", "no ELF header",
     "name a plugin's .so file"},
    {"writable_by_all", [](const Path& p) { chmod(p.c_str(), 0666); }, "file",
     "writable by everyone", "chmod o-w"},
    {"directory_writable_by_all", [](const Path& p) { chmod(p.parent_path().c_str(), 0777); },
     "file", "its directory is writable by everyone", "chmod o-w"},
    {"above_writable_by_all",
     [](const Path& p) { chmod(p.parent_path().parent_path().c_str(), 0777); }, "file",
     "a directory above it is writable by everyone", "chmod o-w"},
    {"of_another",
     [](const Path& p) {
       if (chown(p.c_str(), 12345, 0)) FAIL();
     },
     "file", "belongs to user 12345", "copy the plugin"},
    {"of_another_group",
     [](const Path& p) {
       if (chown(p.c_str(), 0, 12345)) FAIL();
       chmod(p.c_str(), 0664);
     },
     "file", "writable by group 12345", "chmod g-w"},
    {"other_machine",
     [](const Path& p) { Descriptor::overwrite(p, offsetof(Elf64_Ehdr, e_machine), "\xf3"); },
     "file", "another machine", "rebuild it here"},
    {"no_kind", [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, kinds), number(0)); },
     "file", "has no kind", "give ORR_PLUGIN one"},
    {"kind_of_tomorrow",
     [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, kinds), number(128)); }, "file",
     "kinds 0x80", "install a newer one"},
    {"name_with_a_slash",
     [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, name), "a/b"); }, "file",
     "the name 'a/bl'", "use a-z"},
    {"summary_without_text",
     [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, summary), "\xff"); }, "file",
     "summary has the byte 0xff at 0", "rebuild it"},
    {"duplicate_name",
     [](const Path& p) { std::filesystem::copy(p, p.parent_path() / "orrery-observer-second.so"); },
     "file", "has the same name 'full'", "remove one of the two"},
    {"wrong_kind",
     [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, kinds), number(ORR_KIND_COMM)); },
     "kind", "it is a comm plugin, not observer", "name one of"},
    {"version_of_tomorrow",
     [](const Path& p) {
       Descriptor::set(p, offsetof(orr_plugin, interfaces) + 16, number(2) + number(3));
     },
     "interface", "it serves observer/2 to observer/3", "install versions that fit"},
    {"interface_not_listed",
     [](const Path& p) { Descriptor::set(p, offsetof(orr_plugin, interfaces), "obsolete"); },
     "interface", "does not list 'observer'", "add it to ORR_PLUGIN"},
    {"unresolved_symbol", [](const Path& p) { rename_in(p, "getenv", "getemv"); }, "load", "getemv",
     "link it with -Wl,-z,defs"},
    {"missing_library", [](const Path& p) { rename_in(p, "libc.so.6", "libq.so.6"); }, "load",
     "libq.so.6", "install the package"},
    {"missing_driver",
     [](const Path& p) { rename_in(p, "libstdc++.so.6", std::string("libcuda.so.1\0", 13)); },
     "load", "no NVIDIA driver here", "install the driver"},
    {"gives_nothing", [](const Path&) { setenv("ORRERY_TEST_NOTHING_GIVEN", "1", 1); }, "entry",
     "it gave no 'get'", "set orr_exports.get"},
};

TEST_P(Refusals, NamePathStageReasonAndFix) {
  const Refused& r = GetParam();
  if (std::string(r.name).starts_with("of_another") && geteuid() != 0)
    GTEST_SKIP() << "only root gives files away";
  std::filesystem::create_directory(dir_ / "plugins");
  const Path file = copy("orrery-test-full.so", "plugins/orrery-observer-full.so");
  r.spoil(file);
  Registry registry;
  registry.add(dir_ / "plugins");
  std::string text;
  try {
    registry.observer("full");
    ADD_FAILURE() << "it was taken";
  } catch (const Error& e) {
    text = e.what();
  }
  unsetenv("ORRERY_TEST_NOTHING_GIVEN");
  for (const std::string& part : {file.string(), ": " + std::string(r.stage) + ": ",
                                  std::string(r.reason), std::string(r.fix)})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in: " << text;
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, ::testing::ValuesIn(all),
                         [](const auto& info) { return std::string(info.param.name); });

class SearchPath : public PluginDirectory {
 protected:
  std::string refusal_of(const std::string& listed) {
    setenv("ORRERY_PLUGIN_PATH", listed.c_str(), 1);
    Registry registry;
    const std::string text = error_of(ORR_INVALID, [&] { registry.add(dir_); });
    unsetenv("ORRERY_PLUGIN_PATH");
    return text;
  }
};

TEST_F(SearchPath, RefusesPlacesInTheCurrentDirectory) {
  const std::string here = std::filesystem::current_path();
  for (const char* place : {"build", "./build"})
    EXPECT_EQ(refusal_of(place), "ORRERY_PLUGIN_PATH: '" + std::string(place) +
                                     "' would be looked up in the current directory; write " +
                                     here + "/build");
}

TEST_F(SearchPath, RefusesPlacesThatAreNotThere) {
  EXPECT_EQ(refusal_of("/no/such/place"),
            "ORRERY_PLUGIN_PATH: /no/such/place does not exist; take it out, or name a directory "
            "or a .so file");
}

TEST_F(SearchPath, ABrokenPluginIsNotReplacedByOneFurtherOn) {
  std::filesystem::create_directory(dir_ / "one");
  std::filesystem::create_directory(dir_ / "two");
  const Path broken = copy("orrery-test-full.so", "one/orrery-observer-full.so");
  copy("orrery-test-full.so", "two/orrery-observer-full.so");
  std::filesystem::resize_file(broken, 700);
  Registry registry;
  registry.add(dir_ / "two");
  registry.add(dir_ / "one");
  const std::string text = error_of(ORR_UNAVAILABLE, [&] { registry.observer("full"); });
  EXPECT_EQ(text.find("observer 'full': plugin " + broken.string() + ": file: is truncated"), 0u)
      << text;
}

}  // namespace
}  // namespace orrery
