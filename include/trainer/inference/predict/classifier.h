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

// Returns the output blob `name` of a net for images. If `name` is "", the net must have one
// output, which is returned. Throws kUsage if the output does not exist, kConfig if the output does
// not have one row of scores per item of the batch, and as ImageInput does.
NetOutput ChooseScores(const Net& net, const std::string& name);

// Holds the net's scores for one image.
struct ImageScores {
  std::string path;
  std::string error;          // reason for missing scores; "" if there are scores
  int exit_code = 0;          // exit code for `error`
  std::vector<float> scores;  // by class; the mean over the crops
};

// Receives the scores of one image.
using ScoresSink = std::function<void(const ImageScores& image)>;

// Classifies images. The net computes several images in one pass, while threads read and decode the
// next ones. The memory does not grow with the number of images. Not thread-safe.
class Classifier {
 public:
  // `output` names the output blob with the scores. Throws as ChooseScores and ImagePreprocessor
  // do.
  Classifier(Net& net, const std::string& output, const PreprocessOptions& options);

  // Returns the number of scores per image.
  int64_t classes() const { return output_.Count() / output_.shape[0]; }

  // Puts the next image at the place in its batch that it would have after `images` others. A
  // resumed run thus gives equal scores, because their rounding depends on the place.
  void Skip(int64_t images) { StartBatch(images * preprocessor_.crops()); }
  // Calls `sink` once per path, in the order of the paths, from the calling thread, while `threads`
  // threads decode images. Continues after an image that cannot be read. Throws the errors of
  // `paths`, of the net and of `sink`.
  void Run(ImagePaths& paths, int threads, const ScoresSink& sink);

 private:
  // Holds an image with incomplete scores: `scores.scores` is the sum over the first `crops` crops.
  struct PendingImage {
    ImageScores scores;
    int crops = 0;
  };

  // Holds an image that a thread has decoded. The next image reuses its memory.
  struct DecodedImage {
    ImageScores scores;        // the path, and the error if the image cannot be read
    std::vector<float> crops;  // empty with an error
    std::optional<ImagePreprocessor> preprocessor;
  };

  // Reads and decodes the image of the path. Called by several threads.
  void Decode(DecodedImage* image) const;
  // Adds the crops of the last pending image to the batch, and runs the batch whenever it is full.
  void Enqueue(const std::vector<float>& crops);
  // Empties the batch. The next crop is placed as if `crops` others preceded it.
  void StartBatch(int64_t crops);
  // Runs the net on the waiting crops, padded with zeros, and adds each row of scores to its image.
  // Does nothing if no crops are waiting.
  void RunBatch();
  // Delivers images from the front of the queue, up to the first one that still waits for crops.
  // Divides their sums of scores by the number of crops.
  void DeliverCompleted(const ScoresSink& sink);

  Net& net_;
  InputBlob input_;
  Tensor output_;
  ImagePreprocessor preprocessor_;
  std::deque<PendingImage> pending_;
  std::vector<float> batch_;           // crops for the next pass
  std::vector<PendingImage*> owners_;  // image of each crop; null for skipped places
  size_t skipped_ = 0;
  std::vector<float> scores_;
};

// Returns the indices of the `count` highest scores, the highest first. NaN scores come last.
std::vector<size_t> TopClasses(const std::vector<float>& scores, size_t count);

// Returns the `top` classes in the format of Caffe's C++ example. If `names` is empty, prints class
// indices.
std::string ToText(const ImageScores& image, size_t top, const std::vector<std::string>& names);
// Returns the `top` classes, or the error if the image could not be read.
Json ToJson(const ImageScores& image, size_t top, const std::vector<std::string>& names);

}  // namespace trainer
