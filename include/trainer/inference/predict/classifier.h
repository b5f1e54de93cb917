#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/inference/predict/image_paths.h"
#include "trainer/inference/predict/image_preprocessor.h"
#include "trainer/net/net.h"

namespace trainer {

// Returns the output blob `name` of a net for images, or with "" its only output. Throws kUsage if
// the net has no such output, kConfig if the output does not have one row of scores per item of the
// batch, and as ImageInput.
NetOutput ChooseScores(const Net& net, const std::string& name);

// The net's scores for one image.
struct ImageScores {
  std::string path;
  std::string error;          // reason for missing scores; "" if there are scores
  int exit_code = 0;          // of `error`
  std::vector<float> scores;  // by class; mean over the crops
};

// Receives the scores of one image.
using ScoresSink = std::function<void(const ImageScores& image)>;

// Classifies images, several in one pass of the net, while threads read and decode the next ones.
// The memory does not grow with the number of images. Not thread-safe.
class Classifier {
 public:
  // `output` names the output blob with the scores. Throws as ChooseScores and ImagePreprocessor.
  Classifier(Net& net, const std::string& output, const PreprocessOptions& options);

  // Returns the number of scores per image.
  int64_t classes() const { return output_.Count() / output_.shape[0]; }

  // Gives the next image the place in its batch that it would have after `images` others. The
  // rounding of scores depends on the place, so a resumed run gives equal scores this way.
  void Skip(int64_t images) { StartBatch(images * preprocessor_.crops()); }
  // Calls `sink` once per path, in the order of the paths, from the calling thread. `threads`
  // threads decode images. An image that cannot be read does not stop the others. Throws the errors
  // of `paths`, of the net and of `sink`.
  void Run(ImagePaths& paths, int threads, const ScoresSink& sink);

 private:
  // An image whose scores are not complete yet: `scores.scores` is a sum over `crops` crops.
  struct PendingImage {
    ImageScores scores;
    int crops = 0;
  };

  // An image that a thread has decoded. Its memory is reused.
  struct DecodedImage {
    ImageScores scores;        // the path, and the error of an image that cannot be read
    std::vector<float> crops;  // empty with an error
    std::optional<ImagePreprocessor> preprocessor;
  };

  // Reads and decodes the image of the path. Called by several threads.
  void Decode(DecodedImage* image) const;
  // Adds the crops of the last pending image to the batch, and runs the batch whenever it is full.
  void Enqueue(const std::vector<float>& crops);
  // Empties the batch. The next crop gets the place that it would have after `crops` others.
  void StartBatch(int64_t crops);
  // Runs the net on the crops that wait, padded with zeros, and adds each row of scores to its
  // image. Does nothing without crops.
  void RunBatch();
  // Passes on images from the front of the queue, up to the first one that still waits for crops.
  // Their sums of scores become means.
  void DeliverCompleted(const ScoresSink& sink);

  Net& net_;
  InputBlob input_;
  Tensor output_;
  ImagePreprocessor preprocessor_;
  std::deque<PendingImage> pending_;
  std::vector<float> batch_;           // crops for the next pass
  std::vector<PendingImage*> owners_;  // of these crops; null in the first `skipped_` places
  size_t skipped_ = 0;
  std::vector<float> scores_;
};

// Returns the indices of the `count` highest scores, the highest first. NaN scores come last.
std::vector<size_t> TopClasses(const std::vector<float>& scores, size_t count);

// Returns the `top` classes as Caffe's C++ example prints them. Without `names`, classes are
// numbers.
std::string ToText(const ImageScores& image, size_t top, const std::vector<std::string>& names);
// Returns the `top` classes, or the error of an image that could not be read.
Json ToJson(const ImageScores& image, size_t top, const std::vector<std::string>& names);

}  // namespace trainer
