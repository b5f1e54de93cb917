#include "scaling/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kNameColumns = 22, kBarColumns = 56;

// Lines with a bar each, on a common axis of `seconds`.
class TimelineText {
 public:
  explicit TimelineText(double seconds) : column_(seconds / kBarColumns) {}

  // Returns the seconds of a column.
  double column() const { return column_; }

  // Appends a bar: each part is a sign and the time from its begin to its end. Later parts cover
  // earlier ones.
  void Line(std::string name,
            const std::vector<std::pair<char, std::pair<double, double>>>& parts) {
    name.resize(kNameColumns, ' ');
    std::string bar(kBarColumns, ' ');
    for (const auto& [sign, span] : parts) {
      const size_t begin = At(span.first);
      // A part shorter than a column still gets one.
      const size_t end = span.second > span.first ? std::max(begin + 1, At(span.second)) : begin;
      for (size_t i = begin; i < std::min(end, kBarColumns); ++i) bar[i] = sign;
    }
    bar.erase(bar.find_last_not_of(' ') + 1);
    text_ += name + bar + "\n";
  }
  void Note(const std::string& text) { text_ += text + "\n"; }
  std::string text() && { return std::move(text_); }

 private:
  // Returns the column of a time.
  size_t At(double time) const {
    return std::min(kBarColumns - 1, static_cast<size_t>(std::lround(time / column_)));
  }

  double column_;
  std::string text_;
};

// Returns "1: 3.81 MiB" for bucket number 0.
std::string BucketName(const BucketTiming& bucket, size_t number) {
  return Join(number + 1, ": ", Bytes(static_cast<size_t>(bucket.bytes)));
}

// Returns "ip2 to conv1", or one name if all gradients of the bucket are of one layer.
std::string LayersOfBucket(const IterationProfile& profile, const BucketTiming& bucket) {
  const std::string& first = profile.gradients[static_cast<size_t>(bucket.first)].layer;
  const std::string& last = profile.gradients[static_cast<size_t>(bucket.last)].layer;
  return first == last ? first : first + " to " + last;
}

}  // namespace

std::string RenderTimeline(const IterationProfile& profile, const IterationPrediction& step) {
  constexpr size_t kMostBuckets = 20;
  TimelineText drawing(step.seconds);
  drawing.Line("forward", {{'#', {0, step.backward}}});
  drawing.Line("backward", {{'#', {step.backward, step.end}}});
  const size_t count = step.buckets.size();
  for (size_t i = 0; i < count; ++i) {
    const BucketTiming& bucket = step.buckets[i];
    if (count > kMostBuckets && i >= kMostBuckets / 2 && i < count - kMostBuckets / 2) {
      if (i == kMostBuckets / 2) drawing.Note(Join("... ", count - kMostBuckets, " more"));
      continue;
    }
    drawing.Line("bucket " + BucketName(bucket, i),
                 {{'.', {bucket.ready, bucket.begin}}, {'=', {bucket.begin, bucket.end}}});
  }
  const double sent = step.buckets.empty() ? step.end : std::max(step.end, step.buckets.back().end);
  drawing.Line("loss, update", {{'#', {sent, step.seconds}}});
  drawing.Note(Join("A column is ", Fixed(drawing.column() * 1e3, 3),
                    " ms. #: computing, .: waiting for the bucket before, =: sum."));
  for (const size_t i : {size_t{0}, count - 1}) {
    if (count == 0 || (i > 0 && count == 1)) break;
    std::string layers = LayersOfBucket(profile, step.buckets[i]);
    layers.resize(std::min<size_t>(layers.size(), 50));
    drawing.Note(Join("Bucket ", i + 1, ": ", EscapeControl(layers), "."));
    if (count == 1) break;
  }
  return std::move(drawing).text();
}

}  // namespace trainer
