#include "rank_plan.h"

#include <sstream>

#include "time_line.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

Cluster PlannedCluster(const RankPlan& plan, int ranks) {
  Cluster cluster = plan.cluster;
  cluster.ranks = ranks;
  return cluster;
}

StepPrediction Predict(const RankPlan& plan, int ranks) {
  return PredictStep(plan.work, PlannedCluster(plan, ranks), plan.options);
}

double ImagesPerSecond(const RankPlan& plan, const StepPrediction& step, int ranks) {
  return plan.work.images * ranks / step.seconds;
}

// Of N times what one rank does.
double Efficiency(const RankPlan& plan, const StepPrediction& step) {
  return plan.work.Seconds() / step.seconds;
}

size_t BucketOf(const RankPlan& plan, int ranks) {
  const size_t given = plan.options.bucket_bytes;
  return given > 0 ? given : BucketBytesOf(PlannedCluster(plan, ranks));
}

Json PredictionJson(const RankPlan& plan, int ranks) {
  const StepPrediction step = Predict(plan, ranks);
  Json buckets = Json::Array();
  for (const BucketTime& bucket : step.buckets) {
    buckets.Push(Json::Object()
                     .Set("bytes", bucket.bytes)
                     .Set("first", plan.work.slices[static_cast<size_t>(bucket.first)].layer)
                     .Set("last", plan.work.slices[static_cast<size_t>(bucket.last)].layer)
                     .Set("ready_ms", bucket.ready * 1e3)
                     .Set("begin_ms", bucket.begin * 1e3)
                     .Set("end_ms", bucket.end * 1e3));
  }
  return Json::Object()
      .Set("ranks", ranks)
      .Set("step_ms", step.seconds * 1e3)
      .Set("images_per_s", ImagesPerSecond(plan, step, ranks))
      .Set("efficiency", Efficiency(plan, step))
      .Set("waiting_ms", step.waiting * 1e3)
      .Set("exposed_ms", step.exposed * 1e3)
      .Set("bucket_bytes", BucketOf(plan, ranks))
      .Set("limit", NameOf(step.limit))
      .Set("buckets", buckets);
}

}  // namespace

std::string RankPlanText(const RankPlan& plan) {
  std::ostringstream out;
  const StepWork& work = plan.work;
  out << Wrap(Join(plan.net, ": ", work.images, " images on each rank, ",
                   Bytes(static_cast<size_t>(work.GradientBytes())), " of gradients in ",
                   work.slices.size(), " slices"),
              0)
      << "\n"
      << Wrap(Join("compute (", plan.source, "): forward ", Fixed(work.forward * 1e3, 3),
                   " ms, backward ", Fixed(work.backward * 1e3, 3), " ms, update ",
                   Fixed(work.update * 1e3, 3), " ms; jitter ", Fixed(100 * plan.options.jitter, 1),
                   " %"),
              0)
      << "\n"
      << Wrap(Join("link: ", EscapeControl(plan.cluster.link.name()), ", ",
                   Fixed(plan.cluster.link.Latency(1) * 1e6, 1), " us, ",
                   Fixed(plan.cluster.link.BytesPerSecond() * 1e-9, 3), " GB/s in each direction; ",
                   plan.cluster.ranks_per_machine, " ranks on a machine"),
              0)
      << "\n\n";
  Table table(
      {"ranks", "nodes", "ms/step", "images/s", "efficiency, %", "ms exposed", "bucket", "limit"});
  table.InBytes({"bucket"}).LeaveOut({"nodes", "bucket"});
  for (const int ranks : plan.ranks) {
    const StepPrediction step = Predict(plan, ranks);
    const double images = ImagesPerSecond(plan, step, ranks);
    table.Add({Join(ranks), Join(PlannedCluster(plan, ranks).machines()),
               Fixed(step.seconds * 1e3, 2), Fixed(images, images < 1000 ? 1 : 0),
               Fixed(100 * Efficiency(plan, step), 1), Fixed(step.exposed * 1e3, 2),
               ranks == 1 ? "-" : Join(BucketOf(plan, ranks)), NameOf(step.limit)});
  }
  out << table.ToString() << "\nAn iteration on " << plan.ranks.back() << " ranks:\n"
      << DrawTimeLine(work, Predict(plan, plan.ranks.back()));
  return out.str();
}

std::string RankPlanJson(const RankPlan& plan) {
  const StepWork& work = plan.work;
  Json slices = Json::Array(), predictions = Json::Array();
  for (const SliceTime& slice : work.slices) {
    slices.Push(Json::Object()
                    .Set("layer", slice.layer)
                    .Set("bytes", slice.bytes)
                    .Set("ready_ms", slice.ready * 1e3));
  }
  for (const int ranks : plan.ranks) predictions.Push(PredictionJson(plan, ranks));
  return Json::Object()
      .Set("net", plan.net)
      .Set("compute", Json::Object()
                          .Set("source", plan.source)
                          .Set("forward_ms", work.forward * 1e3)
                          .Set("backward_ms", work.backward * 1e3)
                          .Set("update_ms", work.update * 1e3))
      .Set("images_per_rank", work.images)
      .Set("jitter", plan.options.jitter)
      .Set("link", plan.cluster.link.name())
      .Set("slices", slices)
      .Set("predictions", predictions)
      .ToString();
}

}  // namespace trainer
