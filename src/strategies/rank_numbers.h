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
  size_t all() const { return weights() + states_; }
  // Running averages are the last of the weights: forward passes write them, no update does.
  size_t first_average() const { return weights() - averages_; }

  // As many numbers as `to` or `from` has: the weights, or all.
  void Read(std::span<float> to) const;
  void Write(std::span<const float> from) const;

 private:
  template <class Visit>
  void VisitStates(const Visit& visit) const;

  const StrategySeat& seat_;
  std::span<float> weights_;
  size_t states_ = 0, averages_ = 0;
};

// Numbers as a record of a snapshot.
std::string BytesOf(std::span<const float> numbers);
// Throws kBadSnapshot unless the bytes are so many numbers.
void ReadNumbers(std::string_view bytes, std::span<float> numbers);

}  // namespace trainer
