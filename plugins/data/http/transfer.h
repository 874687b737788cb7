// SPDX-License-Identifier: Apache-2.0
//
// One request: for a file, for the rest of one, or with a body of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "access.h"

namespace data {

// What a server says of a file before it sends it.
struct Reply {
  long status = 0;
  std::string etag, modified;  // "" if it does not say
  int64_t length = -1;         // of all of it; -1: not said
  int64_t begin = 0;           // of what is sent
  bool chunked = false;        // it says where it ends without a length

  // What tells this state of the file from others; "" if the server says nothing that does.
  std::string version() const { return etag.empty() ? modified : etag; }
  // What the rest of the file may be asked for by; "" if it may have changed unseen.
  std::string strong() const { return etag.starts_with("W/") ? "" : version(); }
};

struct Outcome {
  Reply reply;
  bool complete = false;  // all was sent, or not wanted
  bool may_pass = false;  // a fault that may be over at the next try
  std::string fault;      // what was wrong, and what to do
  std::string code;       // of a page of S3 that says it: "NoSuchKey"
  int64_t wait_s = 0;     // the server asks to wait for so long
};

// Gives the next bytes of a request's body, at most `most`, from its beginning if it `begins`, and
// returns how many.
using Give = std::function<size_t(char* to, size_t most, bool begins)>;

struct Request {
  Access access;
  int64_t from = 0;          // the first byte that is wanted
  std::string if_unchanged;  // from there if this is still strong(), else all

  std::string method = "GET";
  int64_t bytes = -1;  // of the body; -1: there is none
  Give body;
  std::string hash;                  // its SHA-256, in hexadecimal digits
  std::vector<std::string> headers;  // "Name: value"
};

// What the server sent, as text, and the outcome. Faults that pass are tried again; then, and at
// once for others, the outcome says what is wrong.
struct Answer {
  Outcome outcome;
  std::string text;
};
Answer ask(const Request& request);

constexpr int kTries = 5;  // in a row that bring nothing
// Waits before the next try, longer each time, and as long as the server asks for.
void pause(int tries, int64_t asked_s);

// Is asked before the first byte comes, whether the rest is wanted.
using Begin = std::function<bool(const Reply&)>;
// Takes bytes. Throws if it cannot.
using Take = std::function<void(const char* bytes, size_t count)>;

// Throws what `begin`, `take` and `request.body` throw.
Outcome transfer(const Request& request, const Begin& begin, const Take& take);

}  // namespace data
