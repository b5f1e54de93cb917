#include "trainer/inference/predict/prediction_run.h"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/log/status_line.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/threads.h"
#include "trainer/inference/predict/prediction_file.h"
#include "trainer/storage/array_writer.h"

namespace trainer {
namespace {

using PredictionClock = std::chrono::steady_clock;

// Prints the JSON object {"images": [...]} image by image, because there may be millions.
class JsonPrinter {
 public:
  void Add(Json image) {
    const std::string text =
        Json::Object().Set("images", Json::Array().Push(std::move(image))).ToString();
    std::cout << (is_first_ ? kHead : ",")
              << std::string_view(text).substr(kHead.size(),
                                               text.size() - kHead.size() - kTail.size());
    is_first_ = false;
  }
  void Finish() { std::cout << kTail; }

 private:
  static constexpr std::string_view kHead = "{\n  \"images\": [", kTail = "\n  ]\n}\n";
  bool is_first_ = true;
};

void PrintError(const ImageScores& image) {
  std::cout.flush();
  std::cerr << "error: " << image.error << "\n";
}

// Adds an image to the totals.
void Count(const ImageScores& image, PredictionFile::Written* counts) {
  ++counts->rows;
  if (image.error.empty()) return;
  ++counts->bad;
  if (counts->exit_code == 0) counts->exit_code = image.exit_code;
}

// Logs how fast this command classified the images after the first `before` rows.
void LogSpeed(const PredictionFile::Written& counts, int64_t before, const std::string& out,
              PredictionClock::time_point start) {
  const int64_t images = counts.rows - before;
  const double seconds =
      std::max(std::chrono::duration<double>(PredictionClock::now() - start).count(), 1e-9);
  const double rate = static_cast<double>(images) / seconds;
  LOG(INFO) << EscapeControl(
      Join("Classified ", images, images == 1 ? " image in " : " images in ", Fixed(seconds, 2),
           " s: ", Fixed(rate, rate < 10 ? 1 : 0), " images/s",
           out.empty() ? "" : Join("; ", out, " has ", counts.rows, " rows"),
           counts.bad == 0 ? "" : Join("; ", counts.bad, " could not be read")));
}

int PrintPredictions(Classifier& classifier, ImagePaths& paths,
                     const PredictionRunOptions& options) {
  JsonPrinter json;
  PredictionFile::Written counts;
  bool are_scores = false;
  const PredictionClock::time_point start = PredictionClock::now();
  classifier.Run(paths, AvailableThreads(), [&](const ImageScores& image) {
    Count(image, &counts);
    are_scores =
        are_scores || std::ranges::any_of(image.scores, [](float s) { return s < 0 || s > 1; });
    if (options.json) {
      json.Add(ToJson(image, static_cast<size_t>(options.top), options.names));
    } else if (image.error.empty()) {
      std::cout << ToText(image, static_cast<size_t>(options.top), options.names);
    } else {
      PrintError(image);
    }
  });
  if (options.json) json.Finish();
  if (are_scores) {
    LOG(INFO) << "The numbers are scores, not probabilities: the net does not end in a Softmax "
                 "layer";
  }
  LogSpeed(counts, 0, "", start);
  return counts.exit_code;
}

// Classifies the images of `paths` and gives each one to `sink`, with a progress line.
void RunWithProgress(Classifier& classifier, ImagePaths& paths, int64_t before,
                     const ScoresSink& sink) {
  Progress progress("Classifying", "images", 0);
  progress.Skip(before);
  classifier.Run(paths, AvailableThreads(), [&](const ImageScores& image) {
    sink(image);
    progress.Add(1);
    if (image.error.empty()) return;
    if (StatusLine::IsShown()) {
      progress.Say("error: " + image.error);
    } else {
      PrintError(image);
    }
  });
}

// Continues the file of an interrupted run. Throws as PredictionFile::Resume, and kUsage if this
// net gives another answer for the last image in the file.
std::unique_ptr<PredictionFile> Continue(Classifier& classifier, ImagePaths& paths,
                                         const PredictionFileOptions& options,
                                         PredictionFile::Written* counts) {
  auto file = PredictionFile::Resume(options, classifier.classes(), paths, counts);
  if (counts->rows == 0) return file;
  LOG(INFO) << EscapeControl(Join("Resuming ", options.path, " after ", counts->rows, " rows"));
  const int64_t images = counts->rows - counts->bad;
  if (images > 0) {
    ImagePaths last({counts->last_image}, "");
    classifier.Skip(images - 1);
    classifier.Run(last, 1, [&](const ImageScores& image) {
      if (image.error.empty()) file->RequireLastAnswer(*counts, image);
    });
  }
  classifier.Skip(images);
  return file;
}

int WriteRows(Classifier& classifier, ImagePaths& paths, const PredictionRunOptions& options) {
  const PredictionFileOptions file_options = {options.out, static_cast<size_t>(options.top),
                                              options.names};
  PredictionFile::Written counts;
  const std::unique_ptr<PredictionFile> file =
      options.continues ? Continue(classifier, paths, file_options, &counts)
                        : std::make_unique<PredictionFile>(file_options, classifier.classes());
  const int64_t before = counts.rows;
  const PredictionClock::time_point start = PredictionClock::now();
  RunWithProgress(classifier, paths, before, [&](const ImageScores& image) {
    Count(image, &counts);
    file->Add(image);
  });
  file->Finish();
  LogSpeed(counts, before, options.out, start);
  return counts.exit_code;
}

// Writes the arrays `scores` (images x classes) and `exit_code` (images). An image that cannot be
// read has scores of NaN.
int WriteArrays(Classifier& classifier, ImagePaths& paths, const PredictionRunOptions& options) {
  const std::unique_ptr<ArrayWriter> writer = OpenArrayWriter(options.out);
  PredictionFile::Written counts;
  const int64_t row[] = {1, classifier.classes()}, one[] = {1};
  const std::vector<float> no_scores(static_cast<size_t>(classifier.classes()),
                                     std::numeric_limits<float>::quiet_NaN());
  const PredictionClock::time_point start = PredictionClock::now();
  RunWithProgress(classifier, paths, 0, [&](const ImageScores& image) {
    Count(image, &counts);
    const auto code = static_cast<float>(image.exit_code);
    writer->Append("scores", row, image.error.empty() ? image.scores : no_scores);
    writer->Append("exit_code", one, {&code, 1});
  });
  writer->Finish();
  LogSpeed(counts, 0, options.out, start);
  return counts.exit_code;
}

}  // namespace

void CheckPredictionOptions(const PredictionRunOptions& options) {
  if (options.out.empty()) {
    if (!options.continues) return;
    throw Error(ErrorCode::kUsage, "--resume continues a file; name it with --out=FILE");
  }
  if (options.json) {
    throw Error(ErrorCode::kUsage,
                "--json prints the answers and --out writes them to a file; leave one of them out "
                "(--out=FILE.jsonl writes JSON)");
  }
  if (!options.out.ends_with(".npz")) return RequirePredictionFormat(options.out);
  if (options.continues) {
    throw Error(ErrorCode::kUsage,
                "--resume cannot continue an .npz file, which is written at the end; write a .csv "
                "or .jsonl file");
  }
}

int RunPredictions(Classifier& classifier, ImagePaths& paths, const PredictionRunOptions& options) {
  if (options.out.empty()) return PrintPredictions(classifier, paths, options);
  if (options.out.ends_with(".npz")) return WriteArrays(classifier, paths, options);
  return WriteRows(classifier, paths, options);
}

}  // namespace trainer
