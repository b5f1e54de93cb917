#pragma once
// A rank's weights and optimizer state as one array in host memory.

#include <span>
#include <string>
#include <string_view>

#include "trainer/strategies/strategy.h"

namespace trainer {

// The weights, including the zeros between parameters, then the optimizer's arrays. Used by one
// thread.
class FlatState {
 public:
  explicit FlatState(const StrategyContext& context);

  size_t weights() const { return weights_.size(); }
  size_t all() const { return all_; }
  // The index of the first running average. They are the last of the weights; forward passes write
  // them, and updates do not.
  size_t first_average() const { return weights() - averages_; }

  // Copies as many numbers as `to` or `from` has, from index `begin` on.
  void Read(std::span<float> to, size_t begin = 0) const;
  void Write(std::span<const float> from, size_t begin = 0) const;
  // Copies what belongs to the parameters with own[i], in their order, to its position in `all`.
  void ReadParams(const std::vector<bool>& own, std::span<float> all) const;
  // Copies the other way; `from` has the first numbers of the array.
  void WriteParams(const std::vector<bool>& own, std::span<const float> from) const;

 private:
  // Calls visit(array, index of its first number, length).
  template <class Visit>
  void VisitArrays(const Visit& visit) const;
  // The same for what belongs to the parameters with own[i].
  template <class Visit>
  void VisitParams(const std::vector<bool>& own, const Visit& visit) const;

  const StrategyContext& context_;
  std::span<float> weights_;
  size_t all_ = 0, averages_ = 0;
};

// Floats as a record of a snapshot.
std::string BytesOf(std::span<const float> numbers);
// Throws kBadSnapshot unless the bytes are as many floats.
void ReadFloats(std::string_view bytes, std::span<float> numbers);

}  // namespace trainer
