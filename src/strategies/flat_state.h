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
  // Returns the index of the first running average. They are the last of the weights; forward
  // passes write them, and updates do not.
  size_t first_average() const { return weights() - averages_; }

  // Copies the rank's state to host memory: as many numbers as `to` has, from index `begin` of the
  // array on.
  void Read(std::span<float> to, size_t begin = 0) const;
  // Copies `from` to the rank's state, from index `begin` of the array on.
  void Write(std::span<const float> from, size_t begin = 0) const;
  // Copies the weights and states of the parameters with own[i] to their positions in `all`.
  void ReadParams(const std::vector<bool>& own, std::span<float> all) const;
  // Copies the weights and states of the parameters with own[i] from their positions in `from`.
  // That may be shorter than the array; then the rest stays unchanged.
  void WriteParams(const std::vector<bool>& own, std::span<const float> from) const;

 private:
  // Calls visit(array, index of its first number, length) for the weights and each array of
  // optimizer state.
  template <class Visit>
  void VisitArrays(const Visit& visit) const;
  // Calls visit(array, index of its first number, length) for the weights and states of the
  // parameters with own[i].
  template <class Visit>
  void VisitParams(const std::vector<bool>& own, const Visit& visit) const;

  const StrategyContext& context_;
  std::span<float> weights_;
  size_t all_ = 0, averages_ = 0;
};

// Returns the bytes of floats, as a rank's record in a snapshot.
std::string BytesOf(std::span<const float> numbers);
// Reads floats from the bytes of a rank's record. Throws kBadSnapshot if it has another length or
// values that are not finite.
void ReadFloats(std::string_view bytes, std::span<float> numbers);

}  // namespace trainer
