#pragma once
// Numbers of values, nodes and memory buffers that cannot be taken for each other, and arrays that
// are indexed by them.

#include <compare>
#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

namespace trainer {

// -1: none.
template <class Tag>
struct Id {
  int number = -1;

  constexpr Id() = default;
  explicit constexpr Id(int n) : number(n) {}
  explicit constexpr Id(size_t n) : number(static_cast<int>(n)) {}
  explicit operator bool() const { return number >= 0; }
  auto operator<=>(const Id&) const = default;
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct StepTag>;
using BufferId = Id<struct BlockTag>;

template <class Key, class T>
class IdVector {
 public:
  T& operator[](Key id) { return items_[static_cast<size_t>(id.number)]; }
  const T& operator[](Key id) const { return items_[static_cast<size_t>(id.number)]; }

  // References to other items are void afterwards unless Reserve was enough.
  Key Add(T item) {
    items_.push_back(std::move(item));
    return Key(items_.size() - 1);
  }
  void Reserve(size_t count) { items_.reserve(count); }
  void Resize(int count) { items_.resize(static_cast<size_t>(count)); }

  int size() const { return static_cast<int>(items_.size()); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

  // The ids of all items, in order.
  auto Ids() const {
    return std::views::iota(0, size()) | std::views::transform([](int n) { return Key(n); });
  }

 private:
  std::vector<T> items_;
};

}  // namespace trainer
