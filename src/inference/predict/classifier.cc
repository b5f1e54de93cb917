#include "trainer/inference/predict/classifier.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/parallel_map.h"

namespace trainer {

NetOutput ChooseScores(const Net& net, const std::string& name) {
  const int64_t batch = ImageInput(net).value.shape[0];
  std::vector<std::string> names;
  for (const NetOutput& output : net.outputs()) {
    names.push_back(output.name);
    const bool chosen = name.empty() ? net.outputs().size() == 1 : name == output.name;
    if (!chosen) continue;
    const Shape& shape = output.value.shape;
    if (shape.Rank() > 1 && shape[0] == batch) return output;
    throw Error(ErrorCode::kConfig,
                Join("output '", EscapeControl(output.name), "' has the shape ", shape.ToString(),
                     "; it must have one row of scores for each of the ", batch, " images"));
  }
  throw Error(ErrorCode::kUsage,
              Join(name.empty() ? "the net has several outputs; choose one with --output."
                                : Join("--output: the net has no output '", EscapeControl(name),
                                       "'.", DidYouMean(name, names)),
                   " It has ", EscapeControl(JoinList(names))));
}

Classifier::Classifier(Net& net, const std::string& output, const PreprocessOptions& options)
    : net_(net),
      input_(ImageInput(net)),
      output_(ChooseScores(net, output).value),
      preprocessor_(input_.value.shape, options) {}

void Classifier::Run(ImagePaths& paths, int threads, const ScoresSink& sink) {
  // Limits the number of pending images, because an image that cannot be read waits until the
  // scores of the previous image are complete.
  const size_t most_pending = static_cast<size_t>(input_.value.shape[0]) + 1024;
  ParallelMap<DecodedImage> images(
      threads, [&](DecodedImage* image) { return paths.Next(&image->scores.path); },
      [&](DecodedImage* image) { Decode(image); });
  while (DecodedImage* const image = images.Next()) {
    pending_.emplace_back().scores = image->scores;
    Enqueue(image->crops);
    if (pending_.size() > most_pending) RunBatch();
    DeliverCompleted(sink);
  }
  RunBatch();
  DeliverCompleted(sink);
  StartBatch(0);
}

void Classifier::Decode(DecodedImage* image) const {
  image->crops.clear();
  image->scores.error.clear();
  image->scores.exit_code = 0;
  // Each thread copies the preprocessor, because a preprocessor stores the image that it prepares.
  if (!image->preprocessor) image->preprocessor.emplace(preprocessor_);
  try {
    image->preprocessor->Read(image->scores.path, &image->crops);
  } catch (const Error& error) {
    image->crops.clear();
    image->scores.error = error.what();
    image->scores.exit_code = static_cast<int>(error.code());
  }
}

void Classifier::Enqueue(const std::vector<float>& crops) {
  const auto item = static_cast<size_t>(input_.value.shape.Count(1));
  for (size_t at = 0; at < crops.size(); at += item) {
    batch_.insert(batch_.end(), crops.begin() + static_cast<std::ptrdiff_t>(at),
                  crops.begin() + static_cast<std::ptrdiff_t>(at + item));
    owners_.push_back(&pending_.back());
    if (static_cast<int64_t>(owners_.size()) == input_.value.shape[0]) RunBatch();
  }
}

void Classifier::StartBatch(int64_t crops) {
  skipped_ = static_cast<size_t>(crops % input_.value.shape[0]);
  owners_.assign(skipped_, nullptr);
  batch_.assign(skipped_ * static_cast<size_t>(input_.value.shape.Count(1)), 0.0f);
}

void Classifier::RunBatch() {
  if (owners_.size() == skipped_) return;
  batch_.resize(static_cast<size_t>(input_.value.Count()), 0.0f);
  net_.WriteNchw(batch_, input_.value);
  net_.Forward();
  scores_.resize(static_cast<size_t>(output_.Count()));
  net_.ReadNchw(output_, scores_);
  const auto row = static_cast<size_t>(classes());
  for (size_t i = skipped_; i < owners_.size(); ++i) {
    std::vector<float>& sums = owners_[i]->scores.scores;
    sums.resize(row, 0.0f);
    for (size_t c = 0; c < row; ++c) sums[c] += scores_[i * row + c];
    ++owners_[i]->crops;
  }
  StartBatch(static_cast<int64_t>(owners_.size()));
}

void Classifier::DeliverCompleted(const ScoresSink& sink) {
  while (!pending_.empty()) {
    auto& [image, crops] = pending_.front();
    if (image.error.empty() && crops < preprocessor_.crops()) return;
    for (float& score : image.scores) score /= static_cast<float>(crops);
    sink(image);
    pending_.pop_front();
  }
}

std::vector<size_t> TopClasses(const std::vector<float>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&](size_t c) {
    return scores[c] == scores[c] ? scores[c] : -std::numeric_limits<float>::infinity();
  };
  std::ranges::stable_sort(order, std::greater(), key);
  order.resize(std::min(order.size(), count));
  return order;
}

std::string ToText(const ImageScores& image, size_t top, const std::vector<std::string>& names) {
  std::string text = Join("---------- Prediction for ", EscapeControl(image.path), " ----------\n");
  for (const size_t c : TopClasses(image.scores, top)) {
    text += Join(Fixed(static_cast<double>(image.scores[c]), 4), " - \"",
                 EscapeControl(names.empty() ? Join("class ", c) : names[c]), "\"\n");
  }
  return text;
}

Json ToJson(const ImageScores& image, size_t top, const std::vector<std::string>& names) {
  Json json = Json::Object().Set("image", image.path);
  if (!image.error.empty()) {
    return json.Set("error", image.error).Set("exit_code", image.exit_code);
  }
  Json list = Json::Array();
  for (const size_t c : TopClasses(image.scores, top)) {
    Json one = Json::Object().Set("class", c);
    if (!names.empty()) one.Set("name", names[c]);
    list.Push(one.Set("score", image.scores[c]));
  }
  return json.Set("answers", std::move(list));
}

}  // namespace trainer
