// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include <cctype>
#include <fstream>

#include "../refuse.h"
#include "address.h"
#include "aws.h"
#include "settings.h"

namespace data {
namespace {

const char* const kHub = "https://huggingface.co";

}  // namespace

std::string escaped(const std::string& text, const char* but) {
  static const char* const kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string(but).find(c) != std::string::npos)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

std::pair<std::string, std::string> cut(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == text.npos) return {text, ""};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

// Amazon's certificates are for names without points; buckets with points are asked for by path, as
// other servers are.
Access access_of_bucket(const std::string& bucket) {
  const AwsAccount account = aws_account();
  Access access;
  const std::string amazon = "s3." + account.region + ".amazonaws.com";
  if (!account.endpoint.empty())
    access.url = account.endpoint + "/" + escaped(bucket);
  else if (bucket.find('.') == bucket.npos)
    access.url = "https://" + escaped(bucket) + "." + amazon;
  else
    access.url = "https://" + amazon + "/" + escaped(bucket);
  access.key = account.key, access.secret = account.secret, access.session = account.session;
  access.region = account.region;
  access.if_denied = account.key.empty()
                         ? "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
                         : "check what the key may do, and that the bucket is in the region " +
                               account.region + " (AWS_REGION)";
  return access;
}

namespace {

Access of_s3(const std::string& address) {
  const auto [bucket, key] = cut(address.substr(5));
  if (bucket.empty() || key.empty() || key.ends_with('/'))
    refuse(address, ": no address of a file in S3; write s3://BUCKET/KEY");
  Access access = access_of_bucket(bucket);
  access.url += "/" + escaped(key);
  return access;
}

std::string hub() {
  std::string endpoint = variable("HF_ENDPOINT");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint.empty() ? kHub : endpoint;
}

// The user's token for the hub; "" if there is none.
std::string hub_token() {
  if (const std::string given = variable("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"); !given.empty())
    return given;
  std::string path = variable("HF_TOKEN_PATH");
  if (const std::string home = variable("HF_HOME"); path.empty() && !home.empty())
    path = home + "/token";
  if (path.empty()) path = cache_folder() + "/huggingface/token";
  std::ifstream file(path);
  std::string token;
  file >> token;
  return token;
}

void ask_hub(Access& access) {
  access.bearer = hub_token();
  access.if_denied = access.bearer.empty()
                         ? "gated and private files want a token: set HF_TOKEN"
                         : "the account of the token must have been given access to it";
}

Access of_hub(const std::string& address) {
  std::string rest = address.substr(5), kind;
  for (const char* each : {"datasets/", "spaces/"})
    if (rest.starts_with(each)) kind = each, rest = rest.substr(kind.size());
  const auto [org, behind] = cut(rest);
  const auto [repository, path] = cut(behind);
  const size_t at = repository.find('@');
  const std::string name = repository.substr(0, at),
                    revision = at == repository.npos ? "main" : repository.substr(at + 1);
  if (org.empty() || name.empty() || revision.empty() || path.empty() || path.ends_with('/'))
    refuse(address,
           ": no address of a file of the Hugging Face Hub; write hf://ORG/NAME/PATH or "
           "hf://datasets/ORG/NAME/PATH");
  Access access;
  // A revision with a slash is written with %2F, as the hub has it.
  access.url = hub() + "/" + kind + escaped(org) + "/" + escaped(name) + "/resolve/" + revision +
               "/" + escaped(path);
  ask_hub(access);
  return access;
}

}  // namespace

Access access_of(const std::string& address) {
  if (address.starts_with("s3://")) return of_s3(address);
  if (address.starts_with("hf://")) return of_hub(address);
  Access access;
  access.url = address;
  access.if_denied = "it may want a name and password, https://NAME:PASSWORD@HOST/PATH";
  if (address.starts_with(hub() + "/")) ask_hub(access);
  return access;
}

}  // namespace data
