// SPDX-License-Identifier: Apache-2.0
//
// A list of plain elements, used as std::vector is. Up to N elements lie in the list itself and
// need no other memory.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

template <class T, uint32_t N>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  ShortList() = default;
  explicit ShortList(size_t n, const T& x = {}) { resize(n, x); }
  template <std::input_iterator I>
  ShortList(I first, I last) {
    insert(end(), first, last);
  }
  ShortList(std::initializer_list<T> list) : ShortList(list.begin(), list.end()) {}
  ShortList(const std::vector<T>& list) : ShortList(list.begin(), list.end()) {}  // NOLINT
  ShortList(const ShortList& other) : ShortList(other.begin(), other.end()) {}
  ShortList(ShortList&& other) noexcept { swap(other); }
  ShortList& operator=(ShortList other) noexcept {
    swap(other);
    return *this;
  }
  ~ShortList() = default;
  void swap(ShortList& other) noexcept {
    std::swap(few_, other.few_), std::swap(more_, other.more_);
    std::swap(size_, other.size_), std::swap(room_, other.room_);
  }

  T* begin() { return more_ ? more_.get() : few_; }
  T* end() { return begin() + size_; }
  const T* begin() const { return more_ ? more_.get() : few_; }
  const T* end() const { return begin() + size_; }
  const T* data() const { return begin(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  const T& at(size_t i) const {
    if (i >= size_) throw std::out_of_range("ShortList::at");
    return begin()[i];
  }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  void push_back(T x) { *open(end(), 1) = x; }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t n, T x = {}) {
    const size_t more = n - std::min<size_t>(n, size_);
    std::fill_n(open(end(), more), more, x);
    size_ = static_cast<uint32_t>(n);
  }
  void assign(size_t n, T x) { clear(), resize(n, x); }
  T* insert(const T* at, T x) { return insert(at, 1, x); }
  T* insert(const T* at, size_t n, T x) {
    T* opened = open(at, n);
    std::fill_n(opened, n, x);
    return opened;
  }
  T* insert(const T* at, std::initializer_list<T> list) {
    return insert(at, list.begin(), list.end());
  }
  // REQUIRES: [first, last) is no part of this list.
  template <std::input_iterator I>
  T* insert(const T* at, I first, I last) {
    T* opened = open(at, static_cast<size_t>(std::distance(first, last)));
    std::copy(first, last, opened);
    return opened;
  }
  T* erase(const T* first, const T* last) {
    T* to = begin() + (first - begin());
    std::copy(last, static_cast<const T*>(end()), to);
    size_ -= static_cast<uint32_t>(last - first);
    return to;
  }
  T* erase(const T* at) { return erase(at, at + 1); }

  bool operator==(const ShortList& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  auto operator<=>(const ShortList& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }

 private:
  // Makes room for n elements before `at`, and returns its begin.
  T* open(const T* at, size_t n) {
    const auto index = at - begin();
    if (size_ + n > room_) {
      room_ = static_cast<uint32_t>(std::max<size_t>(2 * room_, size_ + n));
      auto wider = std::make_unique<T[]>(room_);
      std::copy(begin(), end(), wider.get());
      more_ = std::move(wider);
    }
    std::copy_backward(begin() + index, end(), end() + n);
    size_ += static_cast<uint32_t>(n);
    return begin() + index;
  }

  T few_[N] = {};
  std::unique_ptr<T[]> more_;  // instead of few_; null: the elements fit there
  uint32_t size_ = 0, room_ = N;
};

}  // namespace orrery
