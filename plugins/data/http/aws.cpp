// SPDX-License-Identifier: Apache-2.0
#include "aws.h"

#include <fstream>
#include <map>

#include "../refuse.h"
#include "settings.h"

namespace data {
namespace {

using Values = std::map<std::string, std::string>;

// The values of one section of a file of sections; `found` becomes true if it is there.
Values section_of(const std::string& path, const std::string& section, bool& found) {
  std::ifstream file(path);
  Values values;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    line = trimmed(line);
    if (line.starts_with('[')) {
      inside = line == "[" + section + "]";
      found = found || inside;
    } else if (const size_t equal = line.find('='); inside && equal != line.npos) {
      values[trimmed(line.substr(0, equal))] = trimmed(line.substr(equal + 1));
    }
  }
  return values;
}

std::string file_named(const char* name, const std::string& fallback) {
  const std::string given = variable(name);
  return given.empty() ? variable("HOME") + "/.aws/" + fallback : given;
}

void take(std::string& to, const Values& values, const char* name) {
  if (const auto at = values.find(name); to.empty() && at != values.end()) to = at->second;
}

}  // namespace

AwsAccount aws_account() {
  AwsAccount account;
  account.key = variable("AWS_ACCESS_KEY_ID"), account.secret = variable("AWS_SECRET_ACCESS_KEY");
  if (!account.key.empty()) account.session = variable("AWS_SESSION_TOKEN");
  account.endpoint = variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  std::string region = variable("AWS_REGION", "AWS_DEFAULT_REGION");
  const std::string named = variable("AWS_PROFILE"), profile = named.empty() ? "default" : named;
  bool found = false;
  const std::string secrets = file_named("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
                    settings = file_named("AWS_CONFIG_FILE", "config");
  const Values own = section_of(secrets, profile, found),
               rest = section_of(settings, profile == "default" ? profile : "profile " + profile,
                                 found);
  if (!named.empty() && !found)
    refuse("AWS_PROFILE is ", named, ", and neither ", secrets, " nor ", settings, " has it");
  for (const Values* values : {&own, &rest}) {
    if (account.key.empty() && account.secret.empty() && values->contains("aws_access_key_id")) {
      take(account.key, *values, "aws_access_key_id");
      take(account.secret, *values, "aws_secret_access_key");
      take(account.session, *values, "aws_session_token");
    }
    take(region, *values, "region"), take(account.endpoint, *values, "endpoint_url");
  }
  if (account.key.empty() != account.secret.empty())
    refuse("S3: there is a ", account.key.empty() ? "secret without a key" : "key without a secret",
           "; set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  if (!region.empty()) account.region = region;
  while (account.endpoint.ends_with('/')) account.endpoint.pop_back();
  return account;
}

}  // namespace data
