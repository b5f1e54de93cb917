#include <algorithm>
#include <limits>
#include <numeric>

#include "trainer/net/partition.h"

namespace trainer {
namespace {

constexpr double kNearly = 1.05;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Dynamic programming over (stages so far, layers so far): layers [i, j) become stage s.
class Balancer {
 public:
  Balancer(std::span<const LayerCost> layers, int stages, int passes)
      : layers_(layers), stages_(static_cast<size_t>(stages)) {
    for (const LayerCost& layer : layers) {
      time_.push_back(time_.back() + layer.time);
      weights_.push_back(weights_.back() + layer.weight_bytes);
      values_.push_back(values_.back() + layer.pass_bytes);
    }
    whole_ = weights_.back() + passes * values_.back();
  }

  std::vector<int> Run() {
    const double least =
        Best([](double largest, double share, double) { return std::max(largest, share); });
    if (least == kNever) return {};
    Best([&](double sum, double share, double crossing) {
      return share <= kNearly * least ? sum + crossing : kNever;
    });
    std::vector<int> first;
    size_t end = layers_.size();
    for (size_t s = stages_; s-- > 0;) {
      end = from_[s][end];
      first.insert(first.begin(), static_cast<int>(end));
    }
    return first;
  }

 private:
  // Returns the larger of the shares of time and memory that layers [i, j) take as stage s.
  double Share(size_t s, size_t i, size_t j) const {
    const double under_way = static_cast<double>(stages_ - s);
    const double memory = weights_[j] - weights_[i] + under_way * (values_[j] - values_[i]);
    const double time = time_.back() > 0 ? (time_[j] - time_[i]) / time_.back() : 0;
    return std::max(time, whole_ > 0 ? memory / whole_ : 0);
  }

  // Returns the least cost of dividing all layers; `add` adds the cost of one stage.
  template <class Add>
  double Best(const Add& add) {
    const size_t count = layers_.size();
    std::vector<double> before(count + 1, kNever), now;
    before[0] = 0;
    from_.assign(stages_, std::vector<size_t>(count + 1, 0));
    for (size_t s = 0; s < stages_; ++s) {
      now.assign(count + 1, kNever);
      for (size_t i = 0; i < count; ++i) {
        if (before[i] == kNever || (i > 0 && !layers_[i].may_cut)) continue;
        for (size_t j = i + 1; j <= count; ++j) {
          const double cost =
              add(before[i], Share(s, i, j), i == 0 ? 0 : layers_[i].crossing_bytes);
          if (cost >= now[j]) continue;
          now[j] = cost;
          from_[s][j] = i;
        }
      }
      std::swap(before, now);
    }
    return before[count];
  }

  std::span<const LayerCost> layers_;
  size_t stages_;
  std::vector<double> time_ = {0}, weights_ = {0}, values_ = {0};  // prefix sums by layer
  double whole_;
  std::vector<std::vector<size_t>> from_;  // by stage and end layer: the first layer of the stage
};

}  // namespace

std::vector<int> BalancedStages(std::span<const LayerCost> layers, int stages, int passes) {
  return Balancer(layers, stages, passes).Run();
}

}  // namespace trainer
