// SPDX-License-Identifier: Apache-2.0
#include "objects.h"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "../refuse.h"
#include "access.h"
#include "local_file.h"
#include "transfer.h"

namespace data {
namespace {

constexpr int64_t kPart = int64_t{64} << 20;  // longer files are sent in parts of at least this
constexpr int64_t kMostParts = 10'000;        // that S3 takes
constexpr const char* kScheme = "s3://";

[[noreturn]] void failed(const std::string& address, const std::string& why) {
  fail(ORR_FAILED, address, ": ", why);
}

// The text between two tags, from `at` on, which becomes the place behind; "" if there is none.
std::string between(const std::string& text, const std::string& tag, size_t& at) {
  const std::string begin = "<" + tag + ">", end = "</" + tag + ">";
  const size_t from = text.find(begin, at), to = text.find(end, from);
  if (from == text.npos || to == text.npos) return at = text.npos, "";
  at = to + end.size();
  return text.substr(from + begin.size(), to - from - begin.size());
}
std::string between(const std::string& text, const std::string& tag) {
  size_t at = 0;
  return between(text, tag, at);
}

// The opposite of `escaped`; a server may write a blank as "+".
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char *digits = text.data() + i + 1, *end = digits + 2;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, end, byte, 16).ptr == end)
      out += static_cast<char>(byte), i += 2;
    else
      out += text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  void add(const char* bytes, size_t count) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes), count);
  }
  std::string text() {
    unsigned char hash[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof hash + 1];
    crypto_hash_sha256_final(&state_, hash);
    return sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
  }

 private:
  crypto_hash_sha256_state state_;
};

// The bytes [from, from + bytes) of a file as the body of a request, which may be repeated.
void set_body(Request& request, const LocalFile& file, int64_t from, int64_t bytes) {
  Sha256 hash;
  std::vector<char> some(size_t{1} << 20);
  for (int64_t at = 0; at < bytes;) {
    const size_t most = std::min<size_t>(some.size(), static_cast<size_t>(bytes - at));
    const size_t count = file.read(some.data(), most, from + at);
    if (count == 0) fail(ORR_FAILED, "a file has become shorter while it was sent");
    hash.add(some.data(), count), at += static_cast<int64_t>(count);
  }
  request.hash = hash.text(), request.bytes = bytes;
  request.body = [&file, from, bytes, at = int64_t{0}](char* to, size_t most, bool begins) mutable {
    if (begins) at = 0;
    most = std::min<size_t>(most, static_cast<size_t>(bytes - at));
    const size_t count = most > 0 ? file.read(to, most, from + at) : 0;
    at += static_cast<int64_t>(count);
    return count;
  };
}

void set_body(Request& request, const std::string& text) {
  Sha256 hash;
  hash.add(text.data(), text.size());
  request.hash = hash.text(), request.bytes = static_cast<int64_t>(text.size());
  request.body = [text, at = size_t{0}](char* to, size_t most, bool begins) mutable {
    if (begins) at = 0;
    most = std::min(most, text.size() - at);
    std::copy_n(text.data() + at, most, to);
    at += most;
    return most;
  };
}

// What a request is answered, which must succeed.
Answer succeeding(const std::string& address, const Request& request) {
  Answer answer = ask(request);
  if (!answer.outcome.complete) failed(address, answer.outcome.fault);
  return answer;
}

Request request_for(const std::string& address, const char* method, const std::string& query = "") {
  Request request;
  request.access = access_of(address), request.method = method;
  if (request.access.key.empty())
    failed(address, "nobody may write there unnamed; " + request.access.if_denied);
  request.access.url += query;
  return request;
}

// A condition's header; none: nothing.
void set_condition(Request& request, const char* version) {
  if (version)
    request.headers.push_back(*version ? std::string("If-Match: ") + version : "If-None-Match: *");
}

// The version of what was written; nothing where the condition does not hold.
std::optional<std::string> written(const std::string& address, const Request& request,
                                   const char* version) {
  const Answer answer = ask(request);
  const Outcome& outcome = answer.outcome;
  const long status = outcome.reply.status;
  const bool is_other =
      status == 412 || status == 409 || (status == 404 && outcome.code == "NoSuchKey");
  if (version && !outcome.complete && is_other) return {};
  if (!outcome.complete) failed(address, outcome.fault);
  // Parts are put together while the server has said 200 already.
  if (answer.text.find("<Error>") != std::string::npos)
    failed(address, "the server says " + between(answer.text, "Code"));
  const std::string named = between(answer.text, "ETag");
  return outcome.reply.etag.empty() ? named : outcome.reply.etag;
}

// A file that is sent in parts. Unless it is completed, what has come is given up.
class Parts {
 public:
  Parts(const std::string& address, const LocalFile& file) : address_(address), file_(file) {
    Request begin = request_for(address_, "POST", "?uploads=");
    set_body(begin, "");
    id_ = escaped(between(succeeding(address_, begin).text, "UploadId"), "-._~");
    if (id_.empty()) failed(address_, "the server takes no files in parts");
  }
  ~Parts() {
    if (!done_) try {
        ask(request_for(address_, "DELETE", "?uploadId=" + id_));
      } catch (const std::exception&) {
        // The server keeps the parts until its own time for them is over.
      }
  }
  Parts(const Parts&) = delete;

  std::optional<std::string> send(const char* version) {
    const int64_t size = file_.size(), part = std::max(kPart, (size + kMostParts - 1) / kMostParts);
    std::string list = "<CompleteMultipartUpload>";
    for (int64_t from = 0, number = 1; from < size; from += part, ++number) {
      const std::string n = std::to_string(number);
      Request request = request_for(address_, "PUT", "?partNumber=" + n + "&uploadId=" + id_);
      set_body(request, file_, from, std::min(part, size - from));
      list += "<Part><PartNumber>" + n + "</PartNumber><ETag>" +
              succeeding(address_, request).outcome.reply.etag + "</ETag></Part>";
    }
    Request end = request_for(address_, "POST", "?uploadId=" + id_);
    set_body(end, list + "</CompleteMultipartUpload>");
    set_condition(end, version);
    const auto state = written(address_, end, version);
    done_ = state.has_value();
    return state;
  }

 private:
  const std::string& address_;
  const LocalFile& file_;
  std::string id_;
  bool done_ = false;
};

}  // namespace

std::optional<std::string> put_object(const std::string& address, const std::string& path,
                                      const char* version) {
  const LocalFile file(path);
  if (file.size() > kPart) return Parts(address, file).send(version);
  Request request = request_for(address, "PUT");
  set_body(request, file, 0, file.size());
  set_condition(request, version);
  return written(address, request, version);
}

void list_objects(const std::string& prefix, const std::function<void(const std::string&)>& give) {
  const auto [bucket, key] = cut(prefix.substr(std::string(kScheme).size()));
  if (bucket.empty()) refuse(prefix, ": no address in S3; write s3://BUCKET/KEY");
  std::string next;
  do {
    Request request;
    request.access = access_of_bucket(bucket);
    // Sorted, as they are signed.
    request.access.url +=
        "/?" + (next.empty() ? "" : "continuation-token=" + escaped(next, "-._~") + "&") +
        "encoding-type=url&list-type=2&prefix=" + escaped(key, "-._~");
    const std::string page = succeeding(prefix, request).text;
    if (page.find("<ListBucketResult") == page.npos) failed(prefix, "the server lists no files");
    for (size_t at = page.find("<Contents>"); at < page.size(); at = page.find("<Contents>", at))
      if (const std::string name = between(page, "Key", at); !name.empty())
        give(kScheme + bucket + "/" + plain(name));
    next = between(page, "NextContinuationToken");
  } while (!next.empty());
}

void remove_object(const std::string& address) {
  const Answer answer = ask(request_for(address, "DELETE"));
  if (!answer.outcome.complete && answer.outcome.code != "NoSuchKey")
    failed(address, answer.outcome.fault);
}

}  // namespace data
