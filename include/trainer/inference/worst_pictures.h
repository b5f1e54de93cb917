#pragma once
// The images with the highest loss.

#include <cstdint>
#include <vector>

#include "trainer/inference/confusion.h"
#include "trainer/inference/label_uses.h"

namespace trainer {

struct WorstPicture {
  int64_t record = 0;  // its number in the test, from 0
  LabelAnswer answer;
  Shape shape;                 // (1, C, H, W), as the net reads it
  std::vector<float> numbers;  // in that order
};

// Keeps the `most` images of all batches with the highest loss.
class WorstPictures {
 public:
  explicit WorstPictures(size_t most) : most_(most) {}

  // A batch of `images` (N, C, H, W) with an answer for each; those that do not count are missing
  // in `answers`. Ignored where the images are not one for each of `labels` labels.
  void Add(const Net& net, const ConstTensor& images, int64_t labels,
           const std::vector<LabelAnswer>& answers);

  // The highest loss first.
  const std::vector<WorstPicture>& pictures() const { return pictures_; }

 private:
  size_t most_;
  int64_t records_ = 0;
  std::vector<WorstPicture> pictures_;
};

// What a data layer gives out that looks like images, preferably the layer that gives out the
// labels; null where there are none.
const Tensor* ImagesOf(const Net& net, const LabelUse* use);

}  // namespace trainer
