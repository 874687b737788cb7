// SPDX-License-Identifier: Apache-2.0
#include "regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <optional>

#include <orrery/sdk/utf8.hpp>
#include "../refuse.h"

namespace data {
namespace {

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

template <class T, void (*release)(T*)>
struct Releases {
  void operator()(T* held) const { release(held); }
};
template <class T, void (*release)(T*)>
using Held = std::unique_ptr<T, Releases<T, release>>;

using CompileContext = Held<pcre2_compile_context, pcre2_compile_context_free>;
using MatchContext = Held<pcre2_match_context, pcre2_match_context_free>;
using MatchData = Held<pcre2_match_data, pcre2_match_data_free>;
using JitStack = Held<pcre2_jit_stack, pcre2_jit_stack_free>;

template <class Held>
Held checked(Held held) {
  if (!held) throw std::bad_alloc();
  return held;
}

}  // namespace

struct Regex::Code {
  Held<pcre2_code, pcre2_code_free> compiled;
};

Regex::Regex(const std::string& expression, const std::string& where) : where_(where) {
  const std::string ours = for_pcre2(expression, where);
  const CompileContext context = checked(CompileContext(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t at = 0;
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                    context.get());
  if (!compiled) refuse(where, ": the regular expression '", expression, "': ", message_of(error));
  code_ = std::make_unique<Code>();
  code_->compiled.reset(compiled);
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);  // where there is none, matches are interpreted
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

void Regex::each_match(std::string_view text,
                       const std::function<void(size_t, size_t)>& found) const {
  const pcre2_code* code = code_->compiled.get();
  const MatchData match = checked(MatchData(pcre2_match_data_create_from_pattern(code, nullptr)));
  const MatchContext context = checked(MatchContext(pcre2_match_context_create(nullptr)));
  const JitStack stack = checked(JitStack(pcre2_jit_stack_create(32 << 10, 8 << 20, nullptr)));
  pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::optional<size_t> last;  // the end of the last match
  for (size_t from = 0; from <= text.size();) {
    const int count = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, match.get(),
                                  context.get());
    if (count == PCRE2_ERROR_NOMATCH) return;
    if (count < 0) refuse(where_, ": the regular expression on a text: ", message_of(count));
    const size_t* ends = pcre2_get_ovector_pointer(match.get());
    const size_t begin = ends[0], end = ends[1];
    if (begin == end && last == end) {  // behind a match there is no empty one
      from = end < text.size() ? end + orr::code_point(text, end).bytes : end + 1;
      continue;
    }
    found(begin, end);
    last = end, from = end;
  }
}

}  // namespace data
