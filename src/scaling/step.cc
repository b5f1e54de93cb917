#include "trainer/scaling/step.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// One iteration of one rank. All ranks are alike, so that those of a sum come to it together.
class Player {
 public:
  Player(const StepWork& work, const Cluster& cluster, size_t bucket_bytes)
      : work_(work), cluster_(cluster), bucket_bytes_(static_cast<double>(bucket_bytes)) {}

  StepPrediction Play() {
    now_ = work_.forward;
    prediction_.backward = now_;
    size_t next = 0;
    while (next < work_.slices.size()) {
      Compute(std::min(work_.slices[next].ready, work_.backward));
      Join(static_cast<int>(next++));
      if (bucket_.bytes >= bucket_bytes_) Push();
    }
    Compute(work_.backward);
    prediction_.end = now_;
    Push();
    while (sent_ < pushed_) Finish();
    SumOfOne();  // the loss
    now_ += work_.update;
    SumOfOne();  // what signals ask for
    prediction_.seconds = now_;
    return std::move(prediction_);
  }

 private:
  bool Overlaps() const { return cluster_.machines() > 1 || cluster_.inside.by_gpus; }

  void Join(int slice) {
    if (bucket_.bytes == 0) bucket_.first = slice;
    bucket_.last = slice;
    bucket_.bytes += work_.slices[static_cast<size_t>(slice)].bytes;
  }

  void Push() {
    if (bucket_.bytes == 0) return;
    bucket_.ready = now_;
    prediction_.buckets.push_back(bucket_);
    bucket_ = {};
    ++pushed_;
    Begin();
    if (!Overlaps()) Finish();
  }

  // The next bucket, where none is under way.
  void Begin() {
    if (ends_ != kNever || sent_ == pushed_) return;
    BucketTime& bucket = prediction_.buckets[sent_];
    bucket.begin = now_;
    ends_ = now_ + TimeOfSum(cluster_, bucket.bytes).Total();
  }

  // Waits for the bucket that is under way.
  void Finish() {
    now_ = ends_;
    ends_ = kNever;
    prediction_.buckets[sent_++].end = now_;
    Begin();
  }

  // Until backward has done `until` seconds of its work, slower while a bucket is under way.
  void Compute(double until) {
    while (done_ < until) {
      if (ends_ == kNever) {
        now_ += until - done_;
        done_ = until;
        return;
      }
      const double speed = 1 - cluster_.overlap_cost;
      const double could = (ends_ - now_) * speed;
      if (done_ + could > until) {
        now_ += (until - done_) / speed;
        done_ = until;
        return;
      }
      done_ += could;
      Finish();
    }
  }

  void SumOfOne() {
    if (cluster_.ranks > 1) now_ += TimeOfSum(cluster_, sizeof(float)).Total();
  }

  const StepWork& work_;
  const Cluster& cluster_;
  double bucket_bytes_;
  StepPrediction prediction_;
  BucketTime bucket_;  // joined so far
  size_t pushed_ = 0, sent_ = 0;
  double now_ = 0;
  double done_ = 0;       // of backward's work
  double ends_ = kNever;  // the bucket that is under way
};

Limit LimitOf(const StepPrediction& prediction, const StepWork& work, const Cluster& cluster) {
  constexpr double kLittle = 0.1;
  if (prediction.seconds - prediction.compute < kLittle * prediction.seconds) {
    return Limit::kCompute;
  }
  if (prediction.waiting > prediction.exposed) return Limit::kStraggler;
  const SumTime one = TimeOfSum(cluster, sizeof(float));
  double total = 2 * one.Total(), latency = 2 * one.latency;
  for (const BucketTime& bucket : prediction.buckets) {
    const SumTime time = TimeOfSum(cluster, bucket.bytes);
    total += time.Total();
    latency += time.latency;
  }
  if (latency > total / 2) return Limit::kLatency;
  return total > work.backward ? Limit::kBandwidth : Limit::kExposed;
}

}  // namespace

double StepWork::GradientBytes() const {
  double bytes = 0;
  for (const SliceTime& slice : slices) bytes += slice.bytes;
  return bytes;
}

StepWork Scaled(const StepWork& work, double factor) {
  StepWork scaled = work;
  scaled.forward *= factor;
  scaled.backward *= factor;
  scaled.update *= factor;
  for (SliceTime& slice : scaled.slices) slice.ready *= factor;
  return scaled;
}

const char* NameOf(Limit limit) {
  switch (limit) {
    case Limit::kCompute:
      return "compute";
    case Limit::kStraggler:
      return "slowest";
    case Limit::kLatency:
      return "latency";
    case Limit::kBandwidth:
      return "bandwidth";
    case Limit::kExposed:
      return "exposed exchange";
  }
  return "";
}

StepPrediction PredictStep(const StepWork& work, const Cluster& cluster,
                           const StepOptions& options) {
  const size_t bucket = options.bucket_bytes > 0 ? options.bucket_bytes : BucketBytesOf(cluster);
  const StepWork slowest = Scaled(work, 1 + options.jitter * ExpectedMax(cluster.ranks));
  StepPrediction prediction;
  if (cluster.ranks > 1) {
    prediction = Player(slowest, cluster, bucket).Play();
  } else {
    prediction.seconds = slowest.Seconds();
    prediction.backward = slowest.forward;
    prediction.end = slowest.forward + slowest.backward;
  }
  prediction.compute = work.Seconds();
  prediction.waiting = slowest.Seconds() - work.Seconds();
  prediction.exposed = std::max(0.0, prediction.seconds - slowest.Seconds());
  prediction.limit = LimitOf(prediction, work, cluster);
  return prediction;
}

}  // namespace trainer
