// SPDX-License-Identifier: Apache-2.0
//
// Who asks S3, by the variables and files of the AWS command line.
#pragma once

#include <string>

namespace data {

struct AwsAccount {
  std::string key, secret, session;  // "" if there are none: files that everybody may read
  std::string region = "us-east-1";
  std::string endpoint;  // another server that speaks S3's protocol; "": Amazon's
};

// Of AWS_ACCESS_KEY_ID and its likes, or else of the profile AWS_PROFILE ("default") in
// ~/.aws/credentials and ~/.aws/config. Throws Error for a key without its secret, and for a
// profile that is named and in neither file.
AwsAccount aws_account();

}  // namespace data
