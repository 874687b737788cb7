/* SPDX-License-Identifier: Apache-2.0
 *
 * The bootstrap: how a shared object becomes a plugin. This header will not change; all that may
 * grow are interfaces that are asked for by id and version (device/1, kernel/1, comm/1, strategy/1,
 * observer/1, op/1, data/1, host/1).
 *
 * A plugin exports exactly one symbol, the data object `orrery_plugin`, in the ELF section
 * ".orrery_plugin". All its fields but the last are integers and char arrays, so that the host can
 * read it from the file before any code of the plugin runs.
 *
 * Loading. The host looks for files in the places of ORRERY_PLUGIN_PATH, which are absolute, and
 * where it was installed; checks that the file is whole, for this machine, and that nobody but its
 * user or root can have written it; reads the descriptor; opens the file by its canonical path with
 * all symbols resolved and none shared; calls the entry once; asks for tables. It never unloads.
 * Loading and asking for tables has no side effects on the process: no signal handlers, locale,
 * rounding or directory.
 *
 * Growth. Within a version, tables and structs with a `size` grow only at their end. A table's
 * `size` is its sizeof in the header that the plugin was built with; later slots count as missing.
 * In place of missing or NULL slots the host calls functions that return ORR_UNIMPLEMENTED, do
 * nothing, or say no. A plugin must not read or write a host's struct beyond its own header's
 * fields or beyond the struct's `size`.
 */
#ifndef ORRERY_PLUGIN_H
#define ORRERY_PLUGIN_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_PLUGIN_MAGIC 0x0159524552524fULL /* "ORRERY\1", little-endian */
/* The version of this header, which stays 1; and how many interfaces a plugin can have. */
enum { ORR_BOOTSTRAP = 1, ORR_MAX_INTERFACES = 8 };

/* Bits of orr_plugin.kinds: the kinds of the plugin. For each it has an interface of that name. A
 * kernel plugin may also be the device that its kernels work on; then both have the plugin's
 * name. */
enum {
  ORR_KIND_KERNEL = 1,
  ORR_KIND_COMM = 2,
  ORR_KIND_STRATEGY = 4,
  ORR_KIND_OBSERVER = 8,
  ORR_KIND_DEVICE = 16,
  ORR_KIND_OP = 32,
  ORR_KIND_DATA = 64
};

/* An interface that the plugin has: "kernel", versions min..max. The host asks for the newest
 * version that both know; if there is none, it refuses the plugin before its code runs. */
typedef struct orr_interface_id {
  char id[16];       /* a name, then zeros */
  uint32_t min, max; /* both included */
} orr_interface_id;

/* What the plugin's entry gets. `host(id, version)` returns a table of the host that lives as long
 * as the process, or NULL if there is no such table. The struct is borrowed for the call; the
 * tables may be kept. [main thread] */
typedef struct orr_bootstrap {
  uint32_t size; /* of this struct, as the host knows it */
  const void* (*host)(const char* id, uint32_t version);
} orr_bootstrap;

/* What the plugin's entry fills in: `get`, and optionally the rest. `get(self, id, version)`
 * returns the plugin's table, the same each time, or NULL. Tables live until `shutdown(self)`,
 * which may be NULL. [main thread] */
typedef struct orr_exports {
  uint32_t size; /* set by the host: write no more than this */
  void* self;    /* given back with every call */
  const void* (*get)(void* self, const char* id, uint32_t version);
  void (*shutdown)(void* self);
} orr_exports;

/* Called once per process, before any other function of the plugin. If it returns an error, the
 * plugin is refused with that text. Work that is slow or needs a device belongs into the kinds'
 * `probe` and `open`. [main thread] */
typedef orr_status* (*orr_entry)(const orr_bootstrap* boot, orr_exports* out);

/* The exported object. `size` is sizeof(orr_plugin), stamped by ORR_PLUGIN below. */
typedef struct orr_plugin {
  uint64_t magic; /* ORR_PLUGIN_MAGIC */
  uint32_t size;
  uint32_t bootstrap;    /* ORR_BOOTSTRAP */
  uint32_t kinds;        /* ORR_KIND_KERNEL ... */
  uint32_t n_interfaces; /* how many of the list below are used, at least 1 */
  char name[32];         /* what the user types: "local", "cpu", "mine"; of a-z, 0-9, _ and - */
  char version[16];      /* of the plugin, "1.2.0" */
  char build[64];        /* compiler and flags, for people */
  char summary[96];      /* one line for `orrery plugins` */
  orr_interface_id interfaces[ORR_MAX_INTERFACES];
  orr_entry entry; /* the only pointer: valid once the file is loaded, not when read from it */
} orr_plugin;

/* The text of `build`. */
#if defined(__clang__)
#define ORR_BUILD_TEXT "clang " __clang_version__
#elif defined(__GNUC__)
#define ORR_BUILD_TEXT "gcc " __VERSION__
#else
#define ORR_BUILD_TEXT "unknown compiler"
#endif

/* The symbol has C's name in both languages. */
#ifdef __cplusplus
#define ORR_EXTERN_C extern "C"
#else
#define ORR_EXTERN_C extern
#endif

/* Defines the only exported symbol, with sizes and versions. Use once per plugin, at file scope:
 *   ORR_PLUGIN(ORR_KIND_COMM, "mine", "1.0.0", "What it is in one line", entry, 1,
 *              {{"comm", 1, 1}})
 * Compile with -fvisibility=hidden and link with the version script that pkg-config orrery names.
 * Other symbols that a compiler would export, such as templates of the C++ library, could replace
 * those of another plugin. */
/* clang-format off */
#define ORR_PLUGIN(kinds_, name_, version_, summary_, entry_, n_, ...)                           \
  ORR_EXTERN_C orr_plugin orrery_plugin;                                                         \
  __attribute__((visibility("default"), section(".orrery_plugin"), used))                         \
  orr_plugin orrery_plugin = {ORR_PLUGIN_MAGIC, (uint32_t)sizeof(orr_plugin), ORR_BOOTSTRAP,     \
                              kinds_, n_, name_, version_, ORR_BUILD_TEXT, summary_, __VA_ARGS__, \
                              entry_};
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
