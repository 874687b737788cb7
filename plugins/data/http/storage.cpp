// SPDX-License-Identifier: Apache-2.0
#include "storage.h"

#include <cstring>
#include <string>

#include "../refuse.h"
#include "address.h"
#include "download.h"
#include "objects.h"

namespace data {
namespace {

bool is_of_s3(const std::string& address) { return address.starts_with("s3://"); }

void check_writable(const std::string& address) {
  if (!is_of_s3(address))
    refuse(shown(address),
           ": files of this server can only be read; save to a directory or to s3://BUCKET/KEY");
}

void tell(const std::string& version, orr_stored_file* out) {
  out->there = 1;
  if (version.size() < sizeof out->version)
    std::memcpy(out->version, version.c_str(), version.size() + 1);
}

int32_t serves(void*, const char* address) {
  const std::string given = address;
  for (const char* scheme : {"http://", "https://", "s3://", "hf://"})
    if (given.starts_with(scheme)) return 1;
  return 0;
}

orr_status* get(void*, const char* address, const char* path, orr_stored_file* out) {
  return orr::guard([&] {
    const LocalFile file(path);
    const Outcome outcome = download(
        address, access_of(address), file, [](const Reply&) { return true; },
        [](const char*, size_t) {});
    const bool is_missing = outcome.reply.status == 404 && outcome.code != "NoSuchBucket";
    if (!outcome.complete && is_missing) return;
    if (!outcome.complete) fail(ORR_FAILED, shown(address), ": ", outcome.fault);
    tell(outcome.reply.version(), out);
  });
}

orr_status* put(void*, const char* address, const char* path, const char* version,
                orr_stored_file* out) {
  return orr::guard([&] {
    check_writable(address);
    if (const auto state = put_object(address, path, version)) tell(*state, out);
  });
}

orr_status* list(void*, const char* prefix, orr_give_address* give, void* to) {
  return orr::guard([&] {
    if (!is_of_s3(prefix)) fail(ORR_UNIMPLEMENTED, prefix, ": this server does not list its files");
    list_objects(prefix, [&](const std::string& address) { give(to, address.c_str()); });
  });
}

orr_status* remove(void*, const char* address) {
  return orr::guard([&] {
    check_writable(address);
    remove_object(address);
  });
}

}  // namespace

const orr_storage_api storage_table = {
    sizeof(orr_storage_api), nullptr, serves, get, put, list, remove};

}  // namespace data
