#include <sstream>

#include "scaling/timeline.h"
#include "trainer/analysis/scaling/scaling_report.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Returns the report's cluster with another number of ranks.
ClusterModel ClusterOfRanks(const ScalingReport& report, int ranks) {
  ClusterModel cluster = report.cluster;
  cluster.ranks = ranks;
  return cluster;
}

// Predicts an iteration on `ranks` ranks.
IterationPrediction PredictFor(const ScalingReport& report, int ranks) {
  return PredictIteration(report.profile, ClusterOfRanks(report, ranks), report.options);
}

double ImagesPerSecond(const ScalingReport& report, const IterationPrediction& step, int ranks) {
  return report.profile.images * ranks / step.seconds;
}

// Returns the speed relative to N times the speed of one rank.
double Efficiency(const ScalingReport& report, const IterationPrediction& step) {
  return report.profile.Seconds() / step.seconds;
}

// Returns the bucket size that the user gave or, without one, that a run on these ranks chooses.
size_t BucketBytesFor(const ScalingReport& report, int ranks) {
  const size_t given = report.options.bucket_bytes;
  return given > 0 ? given : ChooseBucketBytes(ClusterOfRanks(report, ranks));
}

// Returns the prediction for `ranks` ranks, with the times of each bucket.
Json PredictionToJson(const ScalingReport& report, int ranks) {
  const IterationPrediction step = PredictFor(report, ranks);
  Json buckets = Json::Array();
  for (const BucketTiming& bucket : step.buckets) {
    buckets.Push(
        Json::Object()
            .Set("bytes", bucket.bytes)
            .Set("first", report.profile.gradients[static_cast<size_t>(bucket.first)].layer)
            .Set("last", report.profile.gradients[static_cast<size_t>(bucket.last)].layer)
            .Set("ready_ms", bucket.ready * 1e3)
            .Set("begin_ms", bucket.begin * 1e3)
            .Set("end_ms", bucket.end * 1e3));
  }
  return Json::Object()
      .Set("ranks", ranks)
      .Set("step_ms", step.seconds * 1e3)
      .Set("images_per_s", ImagesPerSecond(report, step, ranks))
      .Set("efficiency", Efficiency(report, step))
      .Set("waiting_ms", step.waiting * 1e3)
      .Set("exposed_ms", step.exposed * 1e3)
      .Set("bucket_bytes", BucketBytesFor(report, ranks))
      .Set("limit", NameOf(step.bottleneck))
      .Set("buckets", buckets);
}

}  // namespace

std::string ToText(const ScalingReport& report) {
  std::ostringstream out;
  const IterationProfile& profile = report.profile;
  out << Wrap(Join(report.net, ": ", profile.images, " images on each rank, ",
                   Bytes(static_cast<size_t>(profile.GradientBytes())), " of gradients in ",
                   profile.gradients.size(), " slices"),
              0)
      << "\n"
      << Wrap(Join("compute (", report.source, "): forward ", Fixed(profile.forward * 1e3, 3),
                   " ms, backward ", Fixed(profile.backward * 1e3, 3), " ms, update ",
                   Fixed(profile.update * 1e3, 3), " ms; jitter ",
                   Fixed(100 * report.options.jitter, 1), " %"),
              0)
      << "\n"
      << Wrap(Join("link: ", EscapeControl(report.cluster.link.name()), ", ",
                   Fixed(report.cluster.link.Latency(1) * 1e6, 1), " us, ",
                   Fixed(report.cluster.link.BytesPerSecond() * 1e-9, 3),
                   " GB/s in each direction; ", report.cluster.ranks_per_machine,
                   " ranks on a machine"),
              0)
      << "\n\n";
  Table table(
      {"ranks", "nodes", "ms/step", "images/s", "efficiency, %", "ms exposed", "bucket", "limit"});
  table.InBytes({"bucket"}).LeaveOut({"nodes", "bucket"});
  for (const int ranks : report.ranks) {
    const IterationPrediction step = PredictFor(report, ranks);
    const double images = ImagesPerSecond(report, step, ranks);
    table.Add({Join(ranks), Join(ClusterOfRanks(report, ranks).machines()),
               Fixed(step.seconds * 1e3, 2), Fixed(images, images < 1000 ? 1 : 0),
               Fixed(100 * Efficiency(report, step), 1), Fixed(step.exposed * 1e3, 2),
               ranks == 1 ? "-" : Join(BucketBytesFor(report, ranks)), NameOf(step.bottleneck)});
  }
  out << table.ToString() << "\nAn iteration on " << report.ranks.back() << " ranks:\n"
      << RenderTimeline(profile, PredictFor(report, report.ranks.back()));
  return out.str();
}

Json ToJson(const ScalingReport& report) {
  const IterationProfile& profile = report.profile;
  Json slices = Json::Array(), predictions = Json::Array();
  for (const GradientReady& slice : profile.gradients) {
    slices.Push(Json::Object()
                    .Set("layer", slice.layer)
                    .Set("bytes", slice.bytes)
                    .Set("ready_ms", slice.ready * 1e3));
  }
  for (const int ranks : report.ranks) predictions.Push(PredictionToJson(report, ranks));
  return Json::Object()
      .Set("net", report.net)
      .Set("compute", Json::Object()
                          .Set("source", report.source)
                          .Set("forward_ms", profile.forward * 1e3)
                          .Set("backward_ms", profile.backward * 1e3)
                          .Set("update_ms", profile.update * 1e3))
      .Set("images_per_rank", profile.images)
      .Set("jitter", report.options.jitter)
      .Set("link", report.cluster.link.name())
      .Set("slices", slices)
      .Set("predictions", predictions);
}

}  // namespace trainer
