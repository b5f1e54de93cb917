#include "dataset_verb.h"
#include "trainer/base/file/file.h"

namespace trainer {
namespace {

// Makes a set of decoded or encoded images, as Caffe's convert_imageset does.
class Images final : public ImageSetVerb {
  void DeclareTask(FlagSet& flags) override {
    constexpr int64_t kMaxSide = 1 << 16;
    ImageSetVerb::DeclareTask(flags);
    flags
        .Bind(&height_, "resize_height", "PIXELS",
              "height of all images; 0 keeps the height of each image")
        .Range(0, kMaxSide);
    flags
        .Bind(&width_, "resize_width", "PIXELS",
              "width of all images; 0 keeps the width of each image")
        .Range(0, kMaxSide);
    flags.BindChoice(
        &fit_, "resize_mode", "MODE",
        {{"exact", ImageFit::kExact}, {"short", ImageFit::kShort}, {"pad", ImageFit::kPad}},
        "exact stretches to the size; short keeps the proportions and makes both "
        "sides at least that long; pad keeps the proportions, fits the image inside "
        "and fills the rest with black");
    flags.Bind(&mean_, "mean", "FILE",
               "also write the mean of the records to FILE, as 'mean' does");
    flags.Bind(&check_size_, "check_size", "", "stop with an error if two images differ in size");
    flags.Bind(&encoded_, "encoded", "",
               "store encoded files instead of pixels; a file that is not resized is stored "
               "unchanged");
    flags.Bind(&encode_type_, "encode_type", "jpg|png", "store images as files of this type")
        .Choices("jpg|png");
    flags.Bind(&quality_, "quality", "N", "quality of the JPEG files that are written")
        .Range(1, 100);
  }

  std::vector<std::string> OutputFiles() const override {
    std::vector<std::string> files = ImageSetVerb::OutputFiles();
    if (!mean_.empty()) files.push_back(mean_);
    return files;
  }

  void RunTask() override {
    ImagesOptions options = Options();
    options.height = height_;
    options.width = width_;
    options.fit = fit_;
    options.check_size = check_size_;
    options.encoded = encoded_;
    options.encode_type = encode_type_;
    options.quality = quality_;
    options.mean = mean_;
    if (!mean_.empty()) RefuseToReplace(mean_, force());
    Write(options);
  }

  int height_ = 0, width_ = 0, quality_ = 95;
  ImageFit fit_ = ImageFit::kExact;
  bool check_size_ = false, encoded_ = false;
  std::string mean_, encode_type_;
};

const RegisterVerb<Images> kImages("dataset images");

}  // namespace
}  // namespace trainer
