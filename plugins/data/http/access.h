// SPDX-License-Identifier: Apache-2.0
//
// What an address stands for: where the file is asked for, and as whom. Besides http:// and
// https:// there are files of S3 and of its likes, s3://BUCKET/KEY, and of the Hugging Face Hub,
// hf://ORG/NAME/PATH and hf://datasets/ORG/NAME/PATH, with @REVISION behind NAME. Names of
// variables and files are those of the AWS command line and of huggingface_hub.
#pragma once

#include <string>
#include <utility>

namespace data {

struct Access {
  std::string url;              // of the request
  std::string bearer;           // a token for the host of `url` alone; "": none
  std::string key, secret;      // for S3's signature, version 4; "": not signed
  std::string session, region;  // of that signature; no session: ""
  std::string if_denied;        // what may help where the server refuses
};

// Throws Error for an address of another form, and for a key without its secret.
Access access_of(const std::string& address);
// Of the bucket itself.
Access access_of_bucket(const std::string& bucket);

// Percent-encoded for a URL (RFC 3986), all bytes but letters, digits and these.
std::string escaped(const std::string& text, const char* but = "-._~/");
// "a/b/c" as {"a", "b/c"}.
std::pair<std::string, std::string> cut(const std::string& text);

}  // namespace data
