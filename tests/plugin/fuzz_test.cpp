// SPDX-License-Identifier: Apache-2.0
//
// Descriptors and ELF files with random damage: read, listed or refused, never a crash. What is
// still taken for a plugin is not loaded here: its code would run.
#include <elf.h>

#include <cstdlib>
#include <random>

#include "fixture.h"
#include "plugin/descriptor.h"
#include "plugin/elf.h"
#include "plugin/loader.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

constexpr int rounds = 1000;

uint64_t seed_of_run() {
  const char* given = std::getenv("ORRERY_FUZZ_SEED");
  return given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

class Fuzz : public PluginDirectory {
 protected:
  void SetUp() override {
    PluginDirectory::SetUp();
    const uint64_t seed = seed_of_run();
    std::printf("ORRERY_FUZZ_SEED=%llu repeats this run\n", static_cast<unsigned long long>(seed));
    random_.seed(seed);
    whole_ = contents(copy("orrery-test-full.so", "whole.so"));
    descriptor_ = size_t(descriptor_at(dir_ / "whole.so"));
    std::filesystem::remove(dir_ / "whole.so");
  }

  uint64_t below(uint64_t n) { return random_() % n; }

  // Numbers that arithmetic on offsets and counts goes wrong with.
  uint64_t odd_number() {
    const uint64_t ends[] = {0,          1,          whole_.size(),     whole_.size() - 1,
                             0x7fffffff, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}};
    return below(3) ? ends[below(std::size(ends))] + below(3) - 1 : random_();
  }

  void damage(std::string& bytes, size_t from, size_t length) {
    for (uint64_t n = 1 + below(4); n > 0; --n) {
      const size_t width = size_t{1} << below(4);
      if (length <= width) return;
      const size_t at = from + below(length - width);
      const uint64_t number = odd_number();
      if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &number, width);
    }
  }

  // Headers, their tables, the descriptor, anything, or less of it.
  std::string mutant() {
    std::string bytes = whole_;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    switch (below(6)) {
      case 0: damage(bytes, EI_NIDENT, sizeof header - EI_NIDENT); break;
      case 1: damage(bytes, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr)); break;
      case 2: damage(bytes, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)); break;
      case 3: damage(bytes, descriptor_, sizeof(orr_plugin)); break;
      case 4: damage(bytes, 0, bytes.size()); break;
      default: bytes.resize(below(bytes.size())); break;
    }
    return bytes;
  }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
  }

  std::mt19937_64 random_;
  std::string whole_;
  size_t descriptor_ = 0;
};

TEST_F(Fuzz, FilesAreReadOrRefusedInWords) {
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    write("a.so", mutant());
    try {
      read_descriptor(dir_ / "a.so");
      check_trusted(dir_ / "a.so");
      exported_symbols(dir_ / "a.so");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ORR_UNAVAILABLE);
      EXPECT_NE(std::string(e.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_LT(refused, rounds);
}

TEST_F(Fuzz, DescriptorsAreWholeOrRefused) {
  for (int i = 0; i < rounds; ++i) {
    std::string bytes(sizeof(orr_plugin), '\0');
    for (char& c : bytes)
      c = static_cast<char>(below(4) ? whole_[descriptor_ + size_t(&c - bytes.data())] : random_());
    std::string file = whole_;
    std::copy(bytes.begin(), bytes.end(), file.begin() + long(descriptor_));
    damage(file, descriptor_, sizeof(orr_plugin));
    write("a.so", file);
    try {
      const orr_plugin plugin = read_descriptor(dir_ / "a.so");
      EXPECT_NO_THROW(check_descriptor(plugin));
      EXPECT_LE(plugin.n_interfaces, uint32_t(ORR_MAX_INTERFACES));
      EXPECT_LT(std::string(plugin.name).size(), sizeof plugin.name);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ORR_UNAVAILABLE);
    }
  }
}

// Side by side: names that meet, kinds that nobody asked for.
TEST_F(Fuzz, ADirectoryOfThemIsListed) {
  for (int i = 0; i < rounds; ++i) write("orrery-observer-" + std::to_string(i) + ".so", mutant());
  Registry registry;
  registry.add(dir_);
  size_t seen = 0;
  for (const PluginFile& file : registry.files())
    seen += file.path.parent_path() == std::filesystem::canonical(dir_);
  EXPECT_EQ(seen, size_t(rounds));
  for (uint32_t kind :
       {ORR_KIND_KERNEL, ORR_KIND_COMM, ORR_KIND_STRATEGY, ORR_KIND_OBSERVER, ORR_KIND_DEVICE})
    registry.names(kind);
}

}  // namespace
}  // namespace orrery
