#include "flat_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {

FlatState::FlatState(const StrategyContext& context)
    : context_(context),
      weights_(context.objective.Weights()),
      averages_(context.objective.RunningStats().size()) {
  VisitArrays([&](float*, size_t begin, size_t count) { all_ = begin + count; });
}

template <class Visit>
void FlatState::VisitArrays(const Visit& visit) const {
  visit(weights_.data(), size_t{0}, weights_.size());
  size_t begin = weights_.size();
  const std::vector<Param*>& params = context_.objective.params();
  for (const std::vector<float*>& kind : context_.optimizer.state_arrays()) {
    for (size_t i = 0; i < kind.size(); ++i) {
      if (kind[i] == nullptr) continue;
      const auto count = static_cast<size_t>(params[i]->count());
      visit(kind[i], begin, count);
      begin += count;
    }
  }
}

void FlatState::Read(std::span<float> to, size_t begin) const {
  VisitArrays([&](const float* array, size_t first, size_t count) {
    const size_t from = std::max(first, begin), end = std::min(first + count, begin + to.size());
    if (from >= end) return;
    context_.device.CopyToHost(&to[from - begin], array + (from - first),
                               (end - from) * sizeof(float));
  });
}

template <class Visit>
void FlatState::VisitParams(const std::vector<bool>& own, const Visit& visit) const {
  const std::vector<Param*>& params = context_.objective.params();
  for (size_t i = 0; i < params.size(); ++i) {
    float* const weight = params[i]->weight;
    if (own[i]) visit(weight, static_cast<size_t>(weight - weights_.data()), params[i]->count());
  }
  size_t at = weights_.size();
  for (const std::vector<float*>& kind : context_.optimizer.state_arrays()) {
    for (size_t i = 0; i < kind.size(); ++i) {
      if (kind[i] == nullptr) continue;
      if (own[i]) visit(kind[i], at, params[i]->count());
      at += static_cast<size_t>(params[i]->count());
    }
  }
}

void FlatState::ReadParams(const std::vector<bool>& own, std::span<float> all) const {
  VisitParams(own, [&](const float* array, size_t first, int64_t count) {
    context_.device.CopyToHost(&all[first], array, static_cast<size_t>(count) * sizeof(float));
  });
}

void FlatState::WriteParams(const std::vector<bool>& own, std::span<const float> from) const {
  VisitParams(own, [&](float* array, size_t first, int64_t count) {
    if (first >= from.size()) return;
    context_.device.CopyToDevice(array, &from[first], static_cast<size_t>(count) * sizeof(float));
  });
}

void FlatState::Write(std::span<const float> from, size_t begin) const {
  VisitArrays([&](float* array, size_t first, size_t count) {
    const size_t at = std::max(first, begin), end = std::min(first + count, begin + from.size());
    if (at >= end) return;
    context_.device.CopyToDevice(array + (at - first), &from[at - begin],
                                 (end - at) * sizeof(float));
  });
}

std::string BytesOf(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

void ReadFloats(std::string_view bytes, std::span<float> numbers) {
  if (bytes.size() != numbers.size_bytes()) {
    throw Error(ErrorCode::kBadSnapshot,
                Join("the state of a rank has ", bytes.size(), " bytes, but ", numbers.size_bytes(),
                     " are expected: the snapshot is from another solver, or damaged; start from "
                     "its weights with --weights"));
  }
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) {
    throw Error(ErrorCode::kBadSnapshot,
                "the state of a rank has values that are not finite (NaN or infinity); use an "
                "earlier snapshot");
  }
}

}  // namespace trainer
