// SPDX-License-Identifier: Apache-2.0
#include "download.h"

#include "address.h"

namespace data {
namespace {

class Download {
 public:
  Download(const std::string& address, const Access& access, const LocalFile& to,
           const Begin& wanted, const Take& came)
      : address_(address), access_(access), to_(to), wanted_(wanted), came_(came) {}

  Outcome run() {
    for (int tries = 1;; ++tries) {
      const int64_t before = size_;
      Outcome outcome = attempt();
      if (outcome.complete && (unwanted_ || is_all(outcome.reply))) return outcome;
      if (!outcome.complete && !outcome.may_pass) return outcome;
      if (size_ > before) tries = 1;
      if (tries == kTries) {
        if (outcome.complete) outcome.fault = "it ends too early";
        outcome.fault += " (tried " + std::to_string(tries) + " times)";
        outcome.complete = false;
        return outcome;
      }
      pause(tries, outcome.wait_s);
    }
  }

 private:
  Outcome attempt() {
    Request request;
    request.access = access_, request.from = strong_.empty() ? 0 : size_;
    request.if_unchanged = strong_;
    const auto begin = [&](const Reply& reply) {
      if (reply.length < 0 && !reply.chunked)
        fail(ORR_FAILED, shown(address_),
             ": the server does not say how long it is, so that a part would pass for all");
      if (reply.begin != 0 && !continues(reply)) {
        strong_.clear(), size_ = 0;  // all of it at the next try
        return false;
      }
      if (reply.begin == 0) restart(reply);
      return !unwanted_;
    };
    return transfer(request, begin, [&](const char* bytes, size_t count) {
      to_.write(bytes, count);
      came_(bytes, count);
      size_ += static_cast<int64_t>(count);
    });
  }
  // Whether it is the rest of what has come. Replies of parts may leave a date out, not an ETag.
  bool continues(const Reply& reply) const {
    const bool is_same =
        reply.version() == strong_ || (reply.version().empty() && !strong_.starts_with('"'));
    return is_same && reply.begin == size_;
  }
  void restart(const Reply& reply) {
    strong_ = reply.strong();
    to_.shorten(0);
    size_ = 0;
    unwanted_ = !wanted_(reply);
  }
  bool is_all(const Reply& reply) const { return reply.length < 0 || reply.length == size_; }

  const std::string& address_;
  const Access& access_;
  const LocalFile& to_;
  const Begin& wanted_;
  const Take& came_;
  bool unwanted_ = false;
  std::string strong_;  // of what has been begun
  int64_t size_ = 0;    // of what has come
};

}  // namespace

Outcome download(const std::string& address, const Access& access, const LocalFile& to,
                 const Begin& wanted, const Take& came) {
  return Download(address, access, to, wanted, came).run();
}

}  // namespace data
