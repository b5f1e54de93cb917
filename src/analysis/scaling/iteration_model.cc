#include "scaling/iteration_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scaling/all_reduce_model.h"
#include "scaling/straggler_fit.h"

namespace trainer {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Simulates one iteration of one rank. All ranks take the same times, so they reach each all-reduce
// together.
class Simulator {
 public:
  Simulator(const IterationProfile& profile, const ClusterModel& cluster, size_t bucket_bytes)
      : profile_(profile), cluster_(cluster), bucket_bytes_(static_cast<double>(bucket_bytes)) {}

  // Simulates backward with its buckets, the sum of the loss, the update and the sum of requests.
  IterationPrediction Run() {
    now_ = profile_.forward;
    prediction_.backward = now_;
    size_t next = 0;
    while (next < profile_.gradients.size()) {
      Compute(std::min(profile_.gradients[next].ready, profile_.backward));
      AddToBucket(static_cast<int>(next++));
      if (bucket_.bytes >= bucket_bytes_) SendBucket();
    }
    Compute(profile_.backward);
    prediction_.end = now_;
    SendBucket();
    while (sent_ < pushed_) FinishCurrent();
    SumOneNumber();  // the loss
    now_ += profile_.update;
    SumOneNumber();  // what signals request
    prediction_.seconds = now_;
    return std::move(prediction_);
  }

 private:
  // Returns whether an all-reduce runs during computation. Ranks of a single machine without GPU
  // links sum in the computing thread instead.
  bool Overlaps() const { return cluster_.machines() > 1 || cluster_.inside.by_gpus; }

  // Adds gradient number `index` of the profile to the bucket that is being filled.
  void AddToBucket(int index) {
    if (bucket_.bytes == 0) bucket_.first = index;
    bucket_.last = index;
    bucket_.bytes += profile_.gradients[static_cast<size_t>(index)].bytes;
  }

  // Closes the bucket that is being filled, if it has gradients, and sends it after the earlier
  // ones.
  void SendBucket() {
    if (bucket_.bytes == 0) return;
    bucket_.ready = now_;
    prediction_.buckets.push_back(bucket_);
    bucket_ = {};
    ++pushed_;
    BeginNext();
    if (!Overlaps()) FinishCurrent();
  }

  // Starts the all-reduce of the next bucket unless one is in progress.
  void BeginNext() {
    if (ends_ != kNever || sent_ == pushed_) return;
    BucketTiming& bucket = prediction_.buckets[sent_];
    bucket.begin = now_;
    ends_ = now_ + PredictAllReduce(cluster_, bucket.bytes).Total();
  }

  // Waits for the bucket in progress, and starts the next one.
  void FinishCurrent() {
    now_ = ends_;
    ends_ = kNever;
    prediction_.buckets[sent_++].end = now_;
    BeginNext();
  }

  // Computes until backward has done `until` seconds of its profile. It is slower while a bucket is
  // sent, by ClusterModel::overlap_cost.
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
      FinishCurrent();
    }
  }

  // Waits for the all-reduce of a single number.
  void SumOneNumber() {
    if (cluster_.ranks > 1) now_ += PredictAllReduce(cluster_, sizeof(float)).Total();
  }

  const IterationProfile& profile_;
  const ClusterModel& cluster_;
  double bucket_bytes_;
  IterationPrediction prediction_;
  BucketTiming bucket_;  // being filled
  size_t pushed_ = 0, sent_ = 0;
  double now_ = 0;
  double done_ = 0;       // seconds of backward's work
  double ends_ = kNever;  // when the bucket in progress ends
};

// Classifies a prediction in the order of the enum: a small loss of time, then the slowest rank if
// it costs more than the exchange, then latency if it is more than half of the exchange.
Bottleneck FindBottleneck(const IterationPrediction& prediction, const IterationProfile& profile,
                          const ClusterModel& cluster) {
  constexpr double kLittle = 0.1;
  if (prediction.seconds - prediction.compute < kLittle * prediction.seconds) {
    return Bottleneck::kCompute;
  }
  if (prediction.waiting > prediction.exposed) return Bottleneck::kStraggler;
  const AllReduceTime one = PredictAllReduce(cluster, sizeof(float));
  double total = 2 * one.Total(), latency = 2 * one.latency;
  for (const BucketTiming& bucket : prediction.buckets) {
    const AllReduceTime time = PredictAllReduce(cluster, bucket.bytes);
    total += time.Total();
    latency += time.latency;
  }
  if (latency > total / 2) return Bottleneck::kLatency;
  return total > profile.backward ? Bottleneck::kBandwidth : Bottleneck::kExposed;
}

}  // namespace

const char* NameOf(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kCompute:
      return "compute";
    case Bottleneck::kStraggler:
      return "slowest";
    case Bottleneck::kLatency:
      return "latency";
    case Bottleneck::kBandwidth:
      return "bandwidth";
    case Bottleneck::kExposed:
      return "exposed exchange";
  }
  return "";
}

IterationPrediction PredictIteration(const IterationProfile& profile, const ClusterModel& cluster,
                                     const ScalingOptions& options) {
  const size_t bucket =
      options.bucket_bytes > 0 ? options.bucket_bytes : ChooseBucketBytes(cluster);
  const IterationProfile slowest = Scaled(profile, 1 + options.jitter * ExpectedMax(cluster.ranks));
  IterationPrediction prediction;
  if (cluster.ranks > 1) {
    prediction = Simulator(slowest, cluster, bucket).Run();
  } else {
    prediction.seconds = slowest.Seconds();
    prediction.backward = slowest.forward;
    prediction.end = slowest.forward + slowest.backward;
  }
  prediction.compute = profile.Seconds();
  prediction.waiting = slowest.Seconds() - profile.Seconds();
  prediction.exposed = std::max(0.0, prediction.seconds - slowest.Seconds());
  prediction.bottleneck = FindBottleneck(prediction, profile, cluster);
  return prediction;
}

}  // namespace trainer
