#include <sstream>

#include "scaling/all_reduce_model.h"
#include "scaling/rank_work.h"
#include "scaling/timeline.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the work's cluster with another number of ranks.
ClusterModel ClusterOfRanks(const RankWork& work, int ranks) {
  ClusterModel cluster = work.cluster;
  cluster.ranks = ranks;
  return cluster;
}

// Predicts an iteration on `ranks` ranks.
IterationPrediction PredictFor(const RankWork& work, int ranks) {
  return PredictIteration(work.profile, ClusterOfRanks(work, ranks), work.options);
}

double ImagesPerSecond(const RankWork& work, const IterationPrediction& step, int ranks) {
  return work.profile.images * ranks / step.seconds;
}

// Returns the speed relative to N times the speed of one rank.
double Efficiency(const RankWork& work, const IterationPrediction& step) {
  return work.profile.Seconds() / step.seconds;
}

// Returns the bucket size that the user gave or, without one, that a run on these ranks chooses.
size_t BucketBytesFor(const RankWork& work, int ranks) {
  const size_t given = work.options.bucket_bytes;
  return given > 0 ? given : ChooseBucketBytes(ClusterOfRanks(work, ranks));
}

// Returns the prediction for `ranks` ranks, with the times of each bucket.
Json PredictionToJson(const RankWork& work, int ranks) {
  const IterationPrediction step = PredictFor(work, ranks);
  Json buckets = Json::Array();
  for (const BucketTiming& bucket : step.buckets) {
    buckets.Push(Json::Object()
                     .Set("bytes", bucket.bytes)
                     .Set("first", work.profile.gradients[static_cast<size_t>(bucket.first)].layer)
                     .Set("last", work.profile.gradients[static_cast<size_t>(bucket.last)].layer)
                     .Set("ready_ms", bucket.ready * 1e3)
                     .Set("begin_ms", bucket.begin * 1e3)
                     .Set("end_ms", bucket.end * 1e3));
  }
  return Json::Object()
      .Set("ranks", ranks)
      .Set("step_ms", step.seconds * 1e3)
      .Set("images_per_s", ImagesPerSecond(work, step, ranks))
      .Set("efficiency", Efficiency(work, step))
      .Set("waiting_ms", step.waiting * 1e3)
      .Set("exposed_ms", step.exposed * 1e3)
      .Set("bucket_bytes", BucketBytesFor(work, ranks))
      .Set("limit", NameOf(step.bottleneck))
      .Set("buckets", buckets);
}

}  // namespace

std::string ToText(const RankWork& work) {
  std::ostringstream out;
  const IterationProfile& profile = work.profile;
  out << Wrap(Join(work.net, ": ", profile.images, " images on each rank, ",
                   Bytes(static_cast<size_t>(profile.GradientBytes())), " of gradients in ",
                   profile.gradients.size(), " slices"),
              0)
      << "\n"
      << Wrap(Join("compute (", work.source, "): forward ", Fixed(profile.forward * 1e3, 3),
                   " ms, backward ", Fixed(profile.backward * 1e3, 3), " ms, update ",
                   Fixed(profile.update * 1e3, 3), " ms; jitter ",
                   Fixed(100 * work.options.jitter, 1), " %"),
              0)
      << "\n"
      << Wrap(Join("link: ", EscapeControl(work.cluster.link.name()), ", ",
                   Fixed(work.cluster.link.Latency(1) * 1e6, 1), " us, ",
                   Fixed(work.cluster.link.BytesPerSecond() * 1e-9, 3), " GB/s in each direction; ",
                   work.cluster.ranks_per_machine, " ranks on a machine"),
              0)
      << "\n\n";
  Table table(
      {"ranks", "nodes", "ms/step", "images/s", "efficiency, %", "ms exposed", "bucket", "limit"});
  table.InBytes({"bucket"}).LeaveOut({"nodes", "bucket"});
  for (const int ranks : work.ranks) {
    const IterationPrediction step = PredictFor(work, ranks);
    const double images = ImagesPerSecond(work, step, ranks);
    table.Add({Join(ranks), Join(ClusterOfRanks(work, ranks).machines()),
               Fixed(step.seconds * 1e3, 2), Fixed(images, images < 1000 ? 1 : 0),
               Fixed(100 * Efficiency(work, step), 1), Fixed(step.exposed * 1e3, 2),
               ranks == 1 ? "-" : Join(BucketBytesFor(work, ranks)), NameOf(step.bottleneck)});
  }
  out << table.ToString() << "\nAn iteration on " << work.ranks.back() << " ranks:\n"
      << RenderTimeline(profile, PredictFor(work, work.ranks.back()));
  return out.str();
}

Json ToJson(const RankWork& work) {
  const IterationProfile& profile = work.profile;
  Json slices = Json::Array(), predictions = Json::Array();
  for (const GradientReady& slice : profile.gradients) {
    slices.Push(Json::Object()
                    .Set("layer", slice.layer)
                    .Set("bytes", slice.bytes)
                    .Set("ready_ms", slice.ready * 1e3));
  }
  for (const int ranks : work.ranks) predictions.Push(PredictionToJson(work, ranks));
  return Json::Object()
      .Set("net", work.net)
      .Set("compute", Json::Object()
                          .Set("source", work.source)
                          .Set("forward_ms", profile.forward * 1e3)
                          .Set("backward_ms", profile.backward * 1e3)
                          .Set("update_ms", profile.update * 1e3))
      .Set("images_per_rank", profile.images)
      .Set("jitter", work.options.jitter)
      .Set("link", work.cluster.link.name())
      .Set("slices", slices)
      .Set("predictions", predictions);
}

}  // namespace trainer
