// SPDX-License-Identifier: Apache-2.0
#include "transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "../refuse.h"
#include "address.h"
#include "settings.h"

namespace data {
namespace {

constexpr long kConnectSeconds = 30, kSilentSeconds = 60, kMostRedirections = 10;
constexpr size_t kMostOfPage = 4096;
constexpr size_t kMostOfAnswer = size_t{64} << 20;
constexpr int64_t kMostWaitS = 60;                           // of what servers ask for
constexpr auto kFirstWait = std::chrono::milliseconds(500);  // then twice as long, and so on
// SHA-256 of a request's body that is empty. S3 wants the header; libcurl sends it from 8.0 on.
constexpr const char* kHashOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// -1 if it is none.
int64_t number(const std::string& text) {
  if (text.empty() || text.size() > 18) return -1;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

class Transfer {
 public:
  Transfer(const Request& request, const Begin& begin, const Take& take)
      : request_(request), begin_(begin), take_(take), curl_(curl_easy_init(), curl_easy_cleanup) {
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (started != CURLE_OK || !curl_) fail(ORR_FAILED, "libcurl does not start");
    set_up();
  }

  Outcome run() {
    const CURLcode code = curl_easy_perform(curl_.get());
    if (thrown_) std::rethrow_exception(thrown_);
    if (code == CURLE_OK && !has_begun_ && is_file()) call_begin();  // of no bytes
    if (thrown_) std::rethrow_exception(thrown_);
    outcome_.reply = reply_;
    if (unwanted_)
      outcome_.complete = true;
    else if (code == CURLE_OK)
      judge_status();
    else
      judge(code);
    return outcome_;
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(curl_.get(), option, value);
    if (code != CURLE_OK) fail(ORR_FAILED, "libcurl: ", curl_easy_strerror(code));
  }
  void set_up() {
    const std::string& url = request_.access.url;
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "orrery");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https") ? "https" : "http,https");
    set(CURLOPT_MAXREDIRS, kMostRedirections);
    say_who();
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
    set(CURLOPT_ERRORBUFFER, error_);
    if (const char* bundle = std::getenv("CURL_CA_BUNDLE")) set(CURLOPT_CAINFO, bundle);
    set(CURLOPT_HEADERDATA, this);
    set(
        CURLOPT_HEADERFUNCTION, +[](char* line, size_t, size_t count, void* self) {
          static_cast<Transfer*>(self)->hear(std::string(line, count));
          return count;
        });
    set(CURLOPT_WRITEDATA, this);
    set(
        CURLOPT_WRITEFUNCTION, +[](char* bytes, size_t, size_t count, void* self) {
          return static_cast<Transfer*>(self)->receive(bytes, count) ? count : size_t{0};
        });
    if (request_.from > 0) {
      add_header("Range: bytes=" + std::to_string(request_.from) + "-");
      add_header("If-Range: " + request_.if_unchanged);
    }
    for (const std::string& header : request_.headers) add_header(header);
    if (request_.method != "GET") set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    if (request_.bytes >= 0) set_body();
    set(CURLOPT_HTTPHEADER, headers_.get());
  }
  void set_body() {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.bytes));
    set(CURLOPT_READDATA, this);
    set(
        CURLOPT_READFUNCTION, +[](char* to, size_t, size_t most, void* self) {
          return static_cast<Transfer*>(self)->give(to, most);
        });
  }
  // A signature is for one host; a token is not sent to others by the library.
  void say_who() {
    const Access& who = request_.access;
    set(CURLOPT_FOLLOWLOCATION, who.key.empty() ? 1L : 0L);
    if (!who.bearer.empty()) {
      set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      set(CURLOPT_XOAUTH2_BEARER, who.bearer.c_str());
    }
    if (who.key.empty()) return;
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + who.region + ":s3").c_str());
    set(CURLOPT_USERNAME, who.key.c_str());
    set(CURLOPT_PASSWORD, who.secret.c_str());
    add_header("x-amz-content-sha256: " + (request_.hash.empty() ? kHashOfNothing : request_.hash));
    if (!who.session.empty()) add_header("x-amz-security-token: " + who.session);
  }
  void add_header(const std::string& line) {
    curl_slist* all = curl_slist_append(headers_.get(), line.c_str());
    if (!all) fail(ORR_FAILED, "no memory for a request");
    (void)headers_.release(), headers_.reset(all);
  }

  // -- what comes
  void hear(const std::string& line) {
    if (line.starts_with("HTTP/")) {  // of the first reply, or one after a redirection
      reply_ = {}, page_.clear();
      const size_t status = line.find(' ');
      reply_.status = status == line.npos ? 0 : std::atol(line.c_str() + status);
      phrase_ = status == line.npos ? "" : trimmed(line.substr(status));
      reply_.chunked = line.starts_with("HTTP/2") || line.starts_with("HTTP/3");
      return;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return;
    const std::string name = lower(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    if (name == "etag") reply_.etag = value;
    if (name == "last-modified") reply_.modified = value;
    if (name == "transfer-encoding") reply_.chunked |= lower(value).ends_with("chunked");
    if (name == "content-length" && reply_.status == 200) reply_.length = number(value);
    if (name == "content-range" && reply_.status == 206) hear_range(value);
    if (name == "retry-after") outcome_.wait_s = std::max<int64_t>(0, number(value));
  }
  // "bytes 100-199/200"
  void hear_range(const std::string& value) {
    const size_t blank = value.find(' '), dash = value.find('-'), slash = value.find('/');
    if (blank == value.npos || dash == value.npos || slash == value.npos) return;
    reply_.begin = number(value.substr(blank + 1, dash - blank - 1));
    reply_.length = number(value.substr(slash + 1));
  }
  bool is_file() const { return reply_.status == 200 || reply_.status == 206 || is_done(); }
  bool is_done() const { return reply_.status == 204 && request_.method != "GET"; }
  // The exceptions of functions that libcurl calls must not pass through it.
  void call_begin() {
    has_begun_ = true;
    try {
      unwanted_ = !begin_(reply_);
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }
  size_t give(char* to, size_t most) {
    try {
      return request_.body(to, most, !std::exchange(has_given_, true));
    } catch (...) {
      thrown_ = std::current_exception();
      return CURL_READFUNC_ABORT;
    }
  }
  bool receive(const char* bytes, size_t count) {
    if (!is_file()) {  // a page that says what is wrong
      page_.append(bytes, std::min(count, kMostOfPage - page_.size()));
      return true;
    }
    if (!has_begun_) call_begin();
    if (unwanted_ || thrown_) return false;
    try {
      take_(bytes, count);
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return !thrown_;
  }

  // -- what it means
  void judge_status() {
    if (is_file()) {
      outcome_.complete = true;
      return;
    }
    static constexpr long kPassing[] = {408, 425, 429, 500, 502, 503, 504};
    outcome_.may_pass = std::ranges::count(kPassing, reply_.status) > 0;
    outcome_.code = code_of_page();
    outcome_.fault = "the server says " + phrase_;
    if (!outcome_.code.empty()) outcome_.fault += " (" + outcome_.code + ")";
    const bool denied = reply_.status == 401 || reply_.status == 403;
    if (denied || (reply_.status / 100 == 3 && !request_.access.key.empty()))
      outcome_.fault += "; " + request_.access.if_denied;
    else if (!outcome_.may_pass)
      outcome_.fault += "; check the address";
  }
  // "AccessDenied", of a page of S3.
  std::string code_of_page() const {
    const std::string begin = "<Code>", end = "</Code>";
    const size_t from = page_.find(begin), to = page_.find(end);
    if (from == page_.npos || to == page_.npos || to < from) return "";
    return page_.substr(from + begin.size(), to - from - begin.size());
  }
  void judge(CURLcode code) {
    static constexpr CURLcode kPassing[] = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
                                            CURLE_PARTIAL_FILE,         CURLE_OPERATION_TIMEDOUT,
                                            CURLE_GOT_NOTHING,          CURLE_SEND_ERROR,
                                            CURLE_RECV_ERROR,           CURLE_HTTP2,
                                            CURLE_HTTP2_STREAM,         CURLE_SSL_CONNECT_ERROR};
    outcome_.may_pass = std::ranges::count(kPassing, code) > 0;
    outcome_.fault = *error_ ? error_ : curl_easy_strerror(code);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
      outcome_.fault += "; CURL_CA_BUNDLE may name a file of the authorities that are trusted";
  }

  const Request& request_;
  const Begin& begin_;
  const Take& take_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_;
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers_{nullptr,
                                                                       curl_slist_free_all};
  Reply reply_;
  std::string phrase_;  // "404 Not Found"
  std::string page_;    // the beginning of what comes with it
  Outcome outcome_;
  bool has_given_ = false, has_begun_ = false, unwanted_ = false;
  std::exception_ptr thrown_;
  char error_[CURL_ERROR_SIZE] = "";
};

}  // namespace

Outcome transfer(const Request& request, const Begin& begin, const Take& take) {
  return Transfer(request, begin, take).run();
}

void pause(int tries, int64_t asked_s) {
  std::chrono::milliseconds wait = kFirstWait * (1 << (tries - 1));
  wait = std::max<std::chrono::milliseconds>(wait,
                                             std::chrono::seconds(std::min(asked_s, kMostWaitS)));
  std::this_thread::sleep_for(wait);
}

Answer ask(const Request& request) {
  for (int tries = 1;; ++tries) {
    Answer answer;
    answer.outcome = transfer(
        request, [](const Reply&) { return true; },
        [&](const char* bytes, size_t count) {
          if (answer.text.size() + count > kMostOfAnswer)
            fail(ORR_FAILED, shown(request.access.url), ": the answer is longer than any");
          answer.text.append(bytes, count);
        });
    if (answer.outcome.complete || !answer.outcome.may_pass) return answer;
    if (tries == kTries) {
      answer.outcome.fault += " (tried " + std::to_string(tries) + " times)";
      return answer;
    }
    pause(tries, answer.outcome.wait_s);
  }
}

}  // namespace data
