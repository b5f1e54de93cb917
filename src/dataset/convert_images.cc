#include <glog/logging.h>

#include <tuple>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/lower_case.h"
#include "trainer/base/permutation.h"
#include "trainer/base/text.h"
#include "trainer/data/image_list.h"
#include "trainer/dataset/dataset.h"
#include "trainer/dataset/new_database.h"

namespace trainer {
namespace {

// The part of a name after its last dot, in small letters.
std::string TypeOf(const std::string& path) {
  const std::string name = FileNameOf(path);
  const size_t dot = name.rfind('.');
  const std::string type = dot == std::string::npos ? "" : LowerCase(name.substr(dot + 1));
  return type == "jpeg" ? "jpg" : type;
}

class Converter {
 public:
  explicit Converter(const ImagesOptions& options) : options_(options) {
    reading_.root = options.root;
    if (!reading_.root.empty() && reading_.root.back() != '/') reading_.root += '/';
    reading_.colors = options.gray ? Colors::kGray : Colors::kColor;
    reading_.height = options.height;
    reading_.width = options.width;
  }

  // False when the file cannot be read.
  bool Convert(const ListedImage& listed, caffe::Datum* datum) try {
    ReadListedImage(options_.list, listed, reading_, &raw_, &image_);
    datum->Clear();
    datum->set_label(listed.label);
    if (options_.encoded || !options_.encode_type.empty()) {
      datum->set_encoded(true);
      datum->set_data(Encoded(listed));
    } else {
      datum->set_channels(image_.channels);
      datum->set_height(image_.height);
      datum->set_width(image_.width);
      datum->set_data(image_.pixels.data(), image_.pixels.size());
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kData && error.code() != ErrorCode::kNoInput &&
        error.code() != ErrorCode::kNoPermission) {
      throw;
    }
    LOG(ERROR) << error.what();
    return false;
  }

  void CheckSize(const ListedImage& listed) {
    if (height_ == 0) std::tie(height_, width_) = std::pair(image_.height, image_.width);
    if (image_.height == height_ && image_.width == width_) return;
    throw Error(
        ErrorCode::kData, {options_.list, listed.line},
        Join("the image is ", image_.width, "x", image_.height, " pixels, but the first one ",
             width_, "x", height_, "; resize them, or leave --check_size out"));
  }

 private:
  // The file as it is where that gives the wanted picture.
  std::string Encoded(const ListedImage& listed) {
    const std::string type = TypeOf(listed.path);
    const std::string& wanted = options_.encode_type.empty() ? type : options_.encode_type;
    if (options_.height == 0 && type == wanted) {
      Image stored;
      DecodeImage(raw_, Colors::kAsStored, {options_.list, listed.line}, "the image", &stored);
      if (stored.channels == image_.channels) return raw_;
    }
    return EncodeImage(image_, wanted);
  }

  const ImagesOptions& options_;
  ImageReading reading_;
  std::string raw_;
  Image image_;
  int height_ = 0, width_ = 0;  // of the first picture
};

void Shuffle(uint64_t seed, std::vector<ListedImage>* images) {
  std::vector<uint32_t> order;
  Permute({seed, 0}, 0, 0, images->size(), &order);
  std::vector<ListedImage> shuffled;
  shuffled.reserve(order.size());
  for (const uint32_t i : order) shuffled.push_back(std::move((*images)[i]));
  *images = std::move(shuffled);
}

}  // namespace

ImagesResult WriteImages(const ImagesOptions& options) {
  if ((options.height == 0) != (options.width == 0)) {
    throw Error(ErrorCode::kUsage, "--resize_height and --resize_width belong together");
  }
  std::vector<ListedImage> images = ReadImageList(options.list);
  if (options.shuffle) Shuffle(options.seed, &images);
  LOG(INFO) << "A total of " << images.size() << " images.";
  NewDatabase database(options.backend, options.database);
  Converter converter(options);
  caffe::Datum datum;
  ImagesResult result;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!converter.Convert(images[i], &datum)) {
      ++result.skipped;
      continue;
    }
    if (options.check_size) converter.CheckSize(images[i]);
    database.Put(static_cast<int64_t>(i), "_" + images[i].path, datum);
    if (database.records() % 1000 == 0)
      LOG(INFO) << "Processed " << database.records() << " files.";
  }
  if (database.records() == 0) {
    throw Error(ErrorCode::kData, {options.list},
                Join("none of the ", images.size(),
                     " images could be read; is the folder before "
                     "their paths right?"));
  }
  database.Finish();
  result.records = database.records();
  return result;
}

}  // namespace trainer
