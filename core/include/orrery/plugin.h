/* SPDX-License-Identifier: Apache-2.0
 *
 * The bootstrap: how a shared object becomes a plugin. Frozen; everything that grows is an interface
 * fetched by id and version (device/1, kernel/1, comm/1, strategy/1, observer/1, host/1).
 *
 * A plugin exports exactly one symbol, the data object `orrery_plugin`, placed in the ELF section
 * ".orrery_plugin". All but its last field are integers and char arrays, so that the host reads who
 * the plugin is from the file, before any of its code runs.
 */
#ifndef ORRERY_PLUGIN_H
#define ORRERY_PLUGIN_H

#include <orrery/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ORR_PLUGIN_MAGIC 0x0159524552524fULL /* "ORRERY\1", little-endian */
enum { ORR_BOOTSTRAP = 1, ORR_MAX_INTERFACES = 8 };

/* Bits of orr_descriptor.kinds. */
enum { ORR_KIND_KERNEL = 1, ORR_KIND_COMM = 2, ORR_KIND_STRATEGY = 4, ORR_KIND_OBSERVER = 8,
       ORR_KIND_DEVICE = 16 };

/* An interface that the plugin serves: "kernel", versions min..max. */
typedef struct orr_interface_id {
  char id[16];
  uint32_t min, max;
} orr_interface_id;

/* What the host offers at load. `host(id, version)` returns a table that lives as long as the
 * process, or NULL when it has no such table. [main thread] */
typedef struct orr_bootstrap {
  uint32_t size;
  const void* (*host)(const char* id, uint32_t version);
} orr_bootstrap;

/* What the plugin answers. `get(self, id, version)` returns its table or NULL; tables live until
 * `shutdown(self)`, which may be NULL. [main thread] */
typedef struct orr_exports {
  uint32_t size;
  void* self;
  const void* (*get)(void* self, const char* id, uint32_t version);
  void (*shutdown)(void* self);
} orr_exports;

typedef orr_status* (*orr_entry)(const orr_bootstrap* boot, orr_exports* out);

/* The exported object. `size` is sizeof(orr_plugin), stamped by ORR_PLUGIN below. */
typedef struct orr_plugin {
  uint64_t magic;
  uint32_t size;
  uint32_t bootstrap;
  uint32_t kinds;
  uint32_t n_interfaces;
  char name[32];    /* what the user types: "local", "cpu", "data" */
  char version[16]; /* of the plugin, "1.2.0" */
  char build[64];   /* compiler and flags, for people */
  char summary[96]; /* one line for `orrery plugins` */
  orr_interface_id interfaces[ORR_MAX_INTERFACES];
  orr_entry entry;
} orr_plugin;

#if defined(__clang__)
#define ORR_BUILD_TEXT "clang " __clang_version__
#elif defined(__GNUC__)
#define ORR_BUILD_TEXT "gcc " __VERSION__
#else
#define ORR_BUILD_TEXT "unknown compiler"
#endif

#ifdef __cplusplus
#define ORR_EXTERN_C extern "C"
#else
#define ORR_EXTERN_C extern
#endif

/* Defines the one exported symbol. Use once per plugin, at file scope:
 *   ORR_PLUGIN(ORR_KIND_COMM, "mine", "1.0.0", "What it is in one line", entry, 1, {{"comm", 1, 1}}) */
#define ORR_PLUGIN(kinds_, name_, version_, summary_, entry_, n_, ...)                           \
  ORR_EXTERN_C orr_plugin orrery_plugin;                                                         \
  __attribute__((visibility("default"), section(".orrery_plugin"), used))                         \
  orr_plugin orrery_plugin = {ORR_PLUGIN_MAGIC, (uint32_t)sizeof(orr_plugin), ORR_BOOTSTRAP,     \
                              kinds_, n_, name_, version_, ORR_BUILD_TEXT, summary_, __VA_ARGS__, \
                              entry_};

#ifdef __cplusplus
}
#endif
#endif
