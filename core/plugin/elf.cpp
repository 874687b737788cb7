// SPDX-License-Identifier: Apache-2.0
//
// A reader for as much of ELF64 as the descriptor needs. Every offset in the file is checked
// against its length: a truncated object would otherwise kill the process with SIGBUS inside
// dlopen.
#include "plugin/elf.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "plugin/descriptor.h"

namespace orrery {
namespace {

#if defined(__x86_64__)
constexpr int native_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int native_machine = EM_AARCH64;
#else
#error "name this machine's ELF constant here"
#endif

constexpr const char* section_name = ".orrery_plugin";

class ElfFile {
 public:
  explicit ElfFile(const std::filesystem::path& file) {
    // Opening a pipe would wait for a writer; a directory has a length, but no bytes to read.
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error) && !error)
      fail(ORR_UNAVAILABLE, "is not a regular file; name a plugin's .so file");
    in_.open(file, std::ios::binary);
    if (!in_) fail(ORR_UNAVAILABLE, "cannot be read ({}); check its permissions", strerror(errno));
    in_.seekg(0, std::ios::end);
    length_ = static_cast<uint64_t>(in_.tellg());
    read_header();
    check_whole();
  }

  orr_plugin descriptor() {
    Elf64_Shdr section = find_section();
    orr_plugin plugin{};
    if (section.sh_type == SHT_NOBITS || section.sh_size < sizeof plugin)
      fail(ORR_UNAVAILABLE,
           "its descriptor has {} bytes where {} are needed; rebuild it with ORR_PLUGIN of "
           "<orrery/plugin.h>",
           section.sh_size, sizeof plugin);
    read(section.sh_offset, &plugin, sizeof plugin);
    plugin.entry = nullptr;
    return plugin;
  }

  std::vector<std::string> exported() {
    std::vector<std::string> names;
    for (int i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr symbols = section(i);
      if (symbols.sh_type != SHT_DYNSYM || symbols.sh_link >= header_.e_shnum) continue;
      const Elf64_Shdr texts = section(int(symbols.sh_link));
      Elf64_Sym symbol;
      for (uint64_t at = 0; at + sizeof symbol <= symbols.sh_size; at += sizeof symbol) {
        read(symbols.sh_offset + at, &symbol, sizeof symbol);
        const int binding = ELF64_ST_BIND(symbol.st_info);
        if (binding != STB_LOCAL && symbol.st_shndx != SHN_UNDEF)
          names.push_back(text(texts, symbol.st_name));
      }
      break;  // a file has one dynamic symbol table
    }
    return names;
  }

 private:
  std::string text(const Elf64_Shdr& texts, uint64_t at) {
    std::string name;
    for (char c = 0; at < texts.sh_size && name.size() < 256; name += c) {
      read(texts.sh_offset + at++, &c, 1);
      if (c == 0) break;
    }
    return name;
  }

  void read(uint64_t offset, void* to, uint64_t bytes) {
    if (offset > length_ || bytes > length_ - offset)
      fail(ORR_UNAVAILABLE, "is truncated: byte {} is needed and it has {}; copy it again",
           offset + bytes, length_);
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!in_) fail(ORR_UNAVAILABLE, "cannot be read; check the disk");
  }

  void read_header() {
    if (length_ < SELFMAG)
      fail(ORR_UNAVAILABLE, "is not a shared object (it has {} bytes)", length_);
    char magic[SELFMAG];
    read(0, magic, SELFMAG);
    if (std::memcmp(magic, ELFMAG, SELFMAG) != 0)
      fail(ORR_UNAVAILABLE, "is not a shared object (no ELF header); name a plugin's .so file");
    read(0, &header_, sizeof header_);
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_machine != native_machine)
      fail(ORR_UNAVAILABLE,
           "is built for another machine (ELF class {}, machine {}; this one is class {}, machine "
           "{}); rebuild it here",
           header_.e_ident[EI_CLASS], header_.e_machine, ELFCLASS64, native_machine);
    if (header_.e_type != ET_DYN)
      fail(ORR_UNAVAILABLE, "is not a shared object (ELF type {}); link it with -shared",
           header_.e_type);
  }

  // The loader maps every PT_LOAD: the file must reach the end of the last one.
  void check_whole() {
    for (int i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      read(header_.e_phoff + uint64_t(i) * sizeof segment, &segment, sizeof segment);
      if (segment.p_type != PT_LOAD) continue;
      if (segment.p_offset > length_ || segment.p_filesz > length_ - segment.p_offset)
        fail(ORR_UNAVAILABLE,
             "is truncated: it has {} bytes and its segments end at {}; copy it again", length_,
             segment.p_offset + segment.p_filesz);
    }
  }

  Elf64_Shdr section(int index) {
    Elf64_Shdr section;
    read(header_.e_shoff + uint64_t(index) * sizeof section, &section, sizeof section);
    return section;
  }

  Elf64_Shdr find_section() {
    if (header_.e_shnum > 0 && header_.e_shstrndx < header_.e_shnum) {
      Elf64_Shdr names = section(header_.e_shstrndx);
      const size_t n = std::strlen(section_name) + 1;
      std::vector<char> name(n);
      for (int i = 0; i < header_.e_shnum; ++i) {
        Elf64_Shdr candidate = section(i);
        if (names.sh_size < n || candidate.sh_name > names.sh_size - n) continue;
        read(names.sh_offset + candidate.sh_name, name.data(), n);
        if (std::memcmp(name.data(), section_name, n) == 0) return candidate;
      }
    }
    fail(ORR_UNAVAILABLE,
         "is a shared object but not an Orrery plugin: it has no section '{}'; define it with "
         "ORR_PLUGIN of <orrery/plugin.h>",
         section_name);
  }

  std::ifstream in_;
  uint64_t length_ = 0;
  Elf64_Ehdr header_{};
};

template <size_t N>
void terminate(char (&text)[N]) {
  text[N - 1] = 0;
}

}  // namespace

orr_plugin read_descriptor(const std::filesystem::path& file) {
  orr_plugin plugin = ElfFile(file).descriptor();
  terminate(plugin.name);
  terminate(plugin.version);
  terminate(plugin.build);
  terminate(plugin.summary);
  for (orr_interface_id& interface : plugin.interfaces) terminate(interface.id);
  set_kind_boot(plugin);
  check_descriptor(plugin);
  return plugin;
}

std::vector<std::string> exported_symbols(const std::filesystem::path& file) {
  return ElfFile(file).exported();
}

}  // namespace orrery
