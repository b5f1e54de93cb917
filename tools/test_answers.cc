#include "test_answers.h"

#include "confusion_report.h"
#include "trainer/observe/mosaic.h"
#include "trainer/predict/class_names.h"
#include "trainer/report/page.h"

namespace trainer {
namespace {

constexpr size_t kWorst = 24;  // rows of 2, 3, 4, 6, 8 and 12 on a page are full

}  // namespace

TestAnswers::TestAnswers(const Flags& flags, const Net& net, const std::string& file)
    : net_(net),
      labels_(flags, net, file),
      matrix_(labels_.Classes()),
      worst_(flags.Has("run") ? kWorst : 0),
      images_(ImagesOf(net, labels_.use())) {
  if (flags.Has("labels")) names_ = ReadClassNames(flags.Text("labels"), matrix_.classes());
}

void TestAnswers::AddBatch() {
  const ScoredLabels batch = labels_.Batch();
  const std::vector<LabelAnswer> answers = AnswersOf(net_, batch, matrix_.classes());
  for (const LabelAnswer& answer : answers) matrix_.Add(answer.label, answer.answer);
  if (images_ != nullptr) worst_.Add(net_, *images_, batch.labels.Count(), answers);
}

std::string TestAnswers::Text() const { return ConfusionText(matrix_, names_); }

Json TestAnswers::Confusion() const { return ConfusionJson(matrix_, names_); }

Json TestAnswers::Worst() const {
  Json list = Json::Array();
  for (const WorstPicture& picture : worst_.pictures()) {
    const LabelAnswer& answer = picture.answer;
    const Image image = Mosaic(picture.numbers, picture.shape.dims());
    Json json = Json::Object()
                    .Set("record", picture.record)
                    .Set("label", answer.label)
                    .Set("answer", answer.answer)
                    .Set("loss", answer.loss)
                    .Set("confidence", answer.confidence)
                    .Set("png", Base64(EncodeImage(image, "png")));
    if (!names_.empty()) {
      json.Set("label_name", names_[static_cast<size_t>(answer.label)])
          .Set("answer_name", names_[static_cast<size_t>(answer.answer)]);
    }
    list.Push(std::move(json));
  }
  return Json::Object().Set("pictures", std::move(list));
}

}  // namespace trainer
