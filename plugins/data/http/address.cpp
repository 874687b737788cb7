// SPDX-License-Identifier: Apache-2.0
#include "address.h"

#include <curl/curl.h>

#include <memory>

#include "../refuse.h"

namespace data {
namespace {

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

Url parsed(const std::string& url) {
  Url parts(curl_url(), curl_url_cleanup);
  if (!parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    parts.reset();
  return parts;
}

// "" if there is none.
std::string part_of(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return "";
  const std::string found = text;
  curl_free(text);
  return found;
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

// As a name of a file that hides nothing and is not too long, with its ending.
std::string plain(std::string name) {
  constexpr size_t kMost = 100;
  for (char& c : name)
    if (!is_plain(c)) c = '_';
  if (name.size() > kMost) name = name.substr(name.size() - kMost);
  if (name.empty() || name[0] == '.') name = "file" + name;
  return name;
}

}  // namespace

std::string shown(const std::string& url) {
  if (url.starts_with("s3://") || url.starts_with("hf://")) return url;  // have no password
  const Url parts = parsed(url);
  if (!parts) return url.substr(0, url.find_first_of("@?"));
  const std::string port = part_of(parts, CURLUPART_PORT);
  return part_of(parts, CURLUPART_SCHEME) + "://" + part_of(parts, CURLUPART_HOST) +
         (port.empty() ? "" : ":" + port) + part_of(parts, CURLUPART_PATH);
}

AddressNames names_of(const std::string& url) {
  const Url parts = parsed(url);
  const std::string scheme = parts ? part_of(parts, CURLUPART_SCHEME) : "";
  if (scheme != "http" && scheme != "https")
    refuse(shown(url),
           ": no address of a file on a server; write https://HOST/PATH, s3://BUCKET/KEY or "
           "hf://ORG/NAME/PATH");
  const std::string path = part_of(parts, CURLUPART_PATH);
  return {plain(part_of(parts, CURLUPART_HOST)), plain(path.substr(path.rfind('/') + 1))};
}

}  // namespace data
