/* @name@: files of f32 numbers and nothing else, `width` of them in a sample. See orrery/data.h for
 * what a reader says of its datasets. */
#include <orrery/data.h>
#include <orrery/host.h>
#include <orrery/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const orr_host* host;

struct orr_data {
  int64_t width, samples;
  char* bytes;
};

static orr_status* refuse(const char* path, const char* why) {
  char text[512];
  snprintf(text, sizeof text, "%s: %s", path, why);
  return host->error(ORR_INVALID, text);
}

/* All bytes of a file, and their number; NULL if there are none. */
static char* contents(const char* path, long* size) {
  FILE* file = fopen(path, "rb");
  char* bytes = NULL;
  *size = 0;
  if (!file) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (*size = ftell(file)) > 0 && *size < 1L << 40) {
    rewind(file);
    bytes = malloc((size_t)*size);
    if (bytes && fread(bytes, 1, (size_t)*size, file) != (size_t)*size) {
      free(bytes);
      bytes = NULL;
    }
  }
  fclose(file);
  return bytes;
}

static orr_status* open_data(void* self, const char* path, const orr_options* options,
                             orr_data** out) {
  orr_data* data;
  long size;
  const int64_t width = options->integer(options->self, "width", 1);
  char* bytes;
  (void)self;
  if (width < 1 || width > 1 << 20) return host->error(ORR_INVALID, "@name@: width is 1 to 2^20");
  bytes = contents(path, &size);
  if (!bytes) return refuse(path, "cannot be read, or is empty");
  data = size % (4 * width) == 0 ? malloc(sizeof *data) : NULL;
  if (!data) {
    free(bytes);
    return refuse(path, "no whole number of samples; check `width`");
  }
  data->width = width;
  data->samples = size / (4 * width);
  data->bytes = bytes;
  *out = data;
  return NULL;
}

static orr_status* info(orr_data* data, orr_data_info* out) {
  out->n_fields = 1;
  out->samples = data->samples;
  return NULL;
}

static orr_status* field(orr_data* data, int32_t number, orr_data_field* out) {
  (void)number;
  out->name = "x";
  out->elements = "<f4";
  out->rank = 1;
  out->dims[0] = data->width;
  return NULL;
}

static orr_status* read_data(orr_data* data, const int64_t* samples, int64_t n, void* const* to) {
  const size_t bytes = 4 * (size_t)data->width;
  char* x = to[0];
  int64_t i;
  for (i = 0; x && i < n; ++i, x += bytes)
    memcpy(x, data->bytes + (size_t)samples[i] * bytes, bytes);
  return NULL;
}

static void close_data(orr_data* data) {
  free(data->bytes);
  free(data);
}

static const orr_data_api table = {.size = sizeof(orr_data_api),
                                   .open = open_data,
                                   .info = info,
                                   .field = field,
                                   .read = read_data,
                                   .close = close_data};

static const void* get(void* self, const char* id, uint32_t version) {
  (void)self;
  return strcmp(id, "data") == 0 && version == 1 ? &table : NULL;
}

static orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  host = boot->host("host", 1);
  out->get = get;
  return NULL;
}

ORR_PLUGIN(ORR_KIND_DATA, "@name@", "0.1.0", "Files of f32 numbers", entry, 1, {{"data", 1, 1}})
