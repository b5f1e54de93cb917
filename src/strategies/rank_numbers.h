#pragma once
// All that a rank has learned, as one array of the host.

#include <span>
#include <string>
#include <string_view>

#include "trainer/strategies/strategy.h"

namespace trainer {

// The weights, zeros between parameters included, then the rule's arrays. Used by one thread.
class RankNumbers {
 public:
  explicit RankNumbers(const StrategySeat& seat);

  size_t weights() const { return weights_.size(); }
  size_t all() const { return all_; }
  // Running averages are the last of the weights: forward passes write them, no update does.
  size_t first_average() const { return weights() - averages_; }

  // As many numbers as `to` or `from` has, from number `begin` on.
  void Read(std::span<float> to, size_t begin = 0) const;
  void Write(std::span<const float> from, size_t begin = 0) const;
  // What belongs to the parameters with own[i], by their order, to its places among all numbers.
  void ReadParams(const std::vector<bool>& own, std::span<float> all) const;
  // The other way; of `from`, the first ones of all numbers.
  void WriteParams(const std::vector<bool>& own, std::span<const float> from) const;

 private:
  // Calls visit(array, its first number among all, its length).
  template <class Visit>
  void VisitArrays(const Visit& visit) const;
  // Calls visit(array, its first number among all, its length) for what belongs to them.
  template <class Visit>
  void VisitParams(const std::vector<bool>& own, const Visit& visit) const;

  const StrategySeat& seat_;
  std::span<float> weights_;
  size_t all_ = 0, averages_ = 0;
};

// Numbers as a record of a snapshot.
std::string BytesOf(std::span<const float> numbers);
// Throws kBadSnapshot unless the bytes are so many numbers.
void ReadNumbers(std::string_view bytes, std::span<float> numbers);

}  // namespace trainer
