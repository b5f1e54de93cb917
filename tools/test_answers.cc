#include "test_answers.h"

#include <utility>

#include "confusion_report.h"
#include "trainer/image/mosaic.h"
#include "trainer/inference/predict/class_names.h"
#include "trainer/monitor/page.h"

namespace trainer {
namespace {

constexpr size_t kWorst = 24;  // rows of 2, 3, 4, 6, 8 and 12 on a page are full

}  // namespace

TestAnswers::TestAnswers(const Flags& flags, TestNets& nets, const std::string& file)
    : compared_(ComparedIn(flags, nets, file)),
      matrix_(compared_[0].labels.Classes()),
      worst_(flags.Has("run") ? kWorst : 0) {
  if (flags.Has("labels")) names_ = ReadClassNames(flags.Text("labels"), matrix_.classes());
}

std::vector<TestAnswers::Compared> TestAnswers::ComparedIn(const Flags& flags, TestNets& nets,
                                                           const std::string& file) {
  std::vector<Compared> compared;
  for (const Net* net : {&nets.net(), nets.rest()}) {
    if (net == nullptr) continue;
    ComparedLabels labels(flags, *net, file);
    const Tensor* const images = FindImages(*net, labels.use());
    compared.push_back({*net, std::move(labels), images});
  }
  return compared;
}

void TestAnswers::AddBatch(bool is_rest) {
  const auto& [net, labels, images] = compared_[is_rest ? 1 : 0];
  const ScoredBatch batch = labels.Batch();
  const std::vector<Prediction> answers = ReadPredictions(net, batch, matrix_.classes());
  for (const Prediction& answer : answers) matrix_.Add(answer.label, answer.predicted);
  if (images != nullptr) worst_.Add(net, *images, batch.labels.Count(), answers);
}

std::string TestAnswers::Text() const { return ConfusionText(matrix_, names_); }

Json TestAnswers::Confusion() const { return ConfusionJson(matrix_, names_); }

Json TestAnswers::Worst() const {
  Json list = Json::Array();
  for (const TopLoss& picture : worst_.images()) {
    const Prediction& answer = picture.prediction;
    const Image image = Mosaic(picture.values, picture.shape.dims());
    Json json = Json::Object()
                    .Set("record", picture.record)
                    .Set("label", answer.label)
                    .Set("answer", answer.predicted)
                    .Set("loss", answer.loss)
                    .Set("confidence", answer.confidence)
                    .Set("png", Base64(EncodeImage(image, "png")));
    if (!names_.empty()) {
      json.Set("label_name", names_[static_cast<size_t>(answer.label)])
          .Set("answer_name", names_[static_cast<size_t>(answer.predicted)]);
    }
    list.Push(std::move(json));
  }
  return Json::Object().Set("pictures", std::move(list));
}

}  // namespace trainer
