#include "trainer/datasets/from_images.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/parallel_map.h"
#include "trainer/datasets/mean.h"
#include "trainer/input/class_folders.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

void Shuffle(uint64_t seed, std::vector<ListedImage>* images) {
  std::vector<uint32_t> order;
  Permute({seed, 0}, 0, 0, images->size(), &order);
  std::vector<ListedImage> shuffled;
  shuffled.reserve(order.size());
  for (const uint32_t i : order) shuffled.push_back(std::move((*images)[i]));
  *images = std::move(shuffled);
}

void CheckOptions(const ImagesOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kUsage, why); };
  if ((options.height == 0) != (options.width == 0)) {
    refuse("--resize_height and --resize_width need each other; give both or none");
  }
  if (options.height == 0 && options.fit != ImageFit::kExact) {
    refuse("--resize_mode needs a size: give --resize_height and --resize_width");
  }
  const bool one_size =
      options.check_size || (options.height > 0 && options.fit != ImageFit::kShort);
  if (!options.mean.empty() && !one_size) {
    refuse(
        "--mean needs images of equal size: give --resize_height and --resize_width with "
        "--resize_mode=exact or pad, or give --check_size");
  }
  const std::string kind = DetectFormat(options.output.path);
  if (!options.mean.empty() && kind != "LMDB" && kind != "LEVELDB") {
    refuse("--mean works only when you write a database; leave it out");
  }
}

// The content of a file of labels: one class name per line.
std::string LabelsText(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

// A file with the same names may be there.
void RefuseOtherLabels(const std::string& path, const std::string& text) {
  if (!Exists(path) || ReadFile(path, uint64_t{1} << 30) == text) return;
  throw Error(ErrorCode::kCannotCreate, {path},
              "the file lists different classes, and it is not overwritten; remove it, or give "
              "another --labels");
}

void RequireRecords(const ImagesOptions& options, const std::string& where, size_t listed,
                    const ImagesResult& result) {
  if (result.records > 0 && (options.validation.empty() || result.validation_records > 0)) return;
  throw Error(ErrorCode::kData, {where},
              Join(result.records > 0 ? "none of the images for validation, of " : "none of the ",
                   listed, " images could be read; check ROOT, the folder before their paths"));
}

// A picture as it goes into a set. Its memory is used again.
struct EncodedImage {
  size_t index = 0;  // in the order of writing
  StoredRecord record;
  std::string problem;  // why the file cannot be used; "" where it can

  std::string raw;  // the file
  Image image;
};

// The part of a name after its last dot, in small letters.
std::string TypeOf(const std::string& path) {
  const std::string name = FileNameOf(path);
  const size_t dot = name.rfind('.');
  const std::string type = dot == std::string::npos ? "" : LowerCase(name.substr(dot + 1));
  return type == "jpeg" ? "jpg" : type;
}

// The picture in the middle of a black one.
Image Padded(const Image& image, int height, int width) {
  Image padded{image.channels, height, width, {}};
  const int top = (height - image.height) / 2, left = (width - image.width) / 2;
  const auto copy = [&](const auto& from, auto* to) {
    if (from.empty()) return;
    to->resize(static_cast<size_t>(image.channels) * static_cast<size_t>(padded.Plane()));
    for (int c = 0; c < image.channels; ++c) {
      for (int y = 0; y < image.height; ++y) {
        std::copy_n(from.data() + c * image.Plane() + int64_t{y} * image.width, image.width,
                    to->data() + c * padded.Plane() + int64_t{y + top} * width + left);
      }
    }
  };
  copy(image.pixels, &padded.pixels);
  copy(image.floats, &padded.floats);
  return padded;
}

// Makes records of files. Any thread.
class ImageEncoder {
 public:
  // The options and the list must outlive it.
  ImageEncoder(const ImagesOptions& options, const ImageList& list)
      : options_(options), list_(list), where_(list.path) {
    reading_.root = options.root;
    if (!reading_.root.empty() && reading_.root.back() != '/') reading_.root += '/';
    reading_.colors = options.gray ? ColorMode::kGray : ColorMode::kColor;
  }

  // Fills all but index and key.
  void Convert(const ListedImage& listed, EncodedImage* to) const try {
    to->problem.clear();
    LoadListedImage(where_, listed, reading_, &to->raw, &to->image);
    const Image& image = to->image;
    const std::pair before(image.height, image.width);
    Fit(listed, &to->image);
    caffe::Datum datum;
    if (options_.encoded || !options_.encode_type.empty()) {
      datum.set_encoded(true);
      datum.set_data(Encoded(listed, before != std::pair(image.height, image.width), *to));
    } else {
      datum = EmptyDatum(image.channels, image.height, image.width);
      datum.set_data(image.pixels.data(), image.pixels.size());
      datum.mutable_float_data()->Add(image.floats.begin(), image.floats.end());
    }
    if (list_.labels.empty()) {
      datum.set_label(listed.label);
    } else {
      const std::span<const float> labels = list_.LabelsOf(listed);
      datum.mutable_labels()->Add(labels.begin(), labels.end());
    }
    datum.SerializeToString(&to->record.value);
  } catch (const Error& error) {
    const ErrorCode code = error.code();
    const bool is_bad_file =
        code == ErrorCode::kData || code == ErrorCode::kNoInput || code == ErrorCode::kNoPermission;
    if (!is_bad_file) throw;
    to->problem = error.what();
  }

 private:
  void Fit(const ListedImage& listed, Image* image) const {
    if (options_.height == 0) return;
    int64_t height = options_.height, width = options_.width;
    if (options_.fit != ImageFit::kExact) {
      const double tall = static_cast<double>(height) / image->height;
      const double wide = static_cast<double>(width) / image->width;
      const double factor =
          options_.fit == ImageFit::kPad ? std::min(tall, wide) : std::max(tall, wide);
      height = std::max<int64_t>(std::llround(image->height * factor), 1);
      width = std::max<int64_t>(std::llround(image->width * factor), 1);
    }
    if (height > kMaxPixels / width) {
      throw Error(ErrorCode::kData, {where_, listed.line},
                  Join("the image of ", image->width, "x", image->height, " pixels would become ",
                       width, "x", height, "; the limit is ", kMaxPixels, " pixels"));
    }
    if (height != image->height || width != image->width) {
      Image resized;
      ResizeImage(*image, {0, 0, image->width, image->height}, static_cast<int>(height),
                  static_cast<int>(width), &resized);
      *image = std::move(resized);
    }
    if (options_.fit != ImageFit::kPad) return;
    if (height == options_.height && width == options_.width) return;
    *image = Padded(*image, options_.height, options_.width);
  }

  // The file as it is where that gives the wanted picture.
  std::string Encoded(const ListedImage& listed, bool resized, const EncodedImage& from) const {
    const std::string type = TypeOf(listed.path);
    const std::string& wanted = options_.encode_type.empty() ? type : options_.encode_type;
    if (!resized && type == wanted) {
      Image stored;
      DecodeImage(from.raw, ColorMode::kAsStored, {where_, listed.line}, "the image", &stored,
                  BitDepth::kFloats);
      // They differ where the image is turned upright.
      if (stored.pixels == from.image.pixels && stored.floats == from.image.floats) return from.raw;
    }
    // These types are not encoded; PNG loses nothing.
    const bool to_png = wanted == "pgm" || wanted == "ppm" || wanted == "tif" || wanted == "tiff";
    return EncodeImage(from.image, to_png ? "png" : wanted, options_.quality);
  }

  const ImagesOptions& options_;
  const ImageList& list_;
  const std::string& where_;  // the list, or the folder, for messages
  ImageFileOptions reading_;
};

class Writing {
 public:
  // `drawn` says for each image whether it belongs to the validation set. If it is empty, only one
  // set is written.
  Writing(const ImagesOptions& options, const ImageList& list, const std::string& validation_path,
          std::vector<bool> drawn)
      : options_(options),
        list_(list),
        where_(list.path),
        encoder_(options, list),
        writer_(OpenRecordWriter(options.output)),
        drawn_(std::move(drawn)) {
    if (drawn_.empty()) return;
    WriteOptions output = options.output;
    output.path = validation_path;
    validation_ = OpenRecordWriter(output);
  }

  ImagesResult Run() {
    const std::vector<ListedImage>& images = list_.images;
    Progress progress(Join("Writing ", options_.output.path), "images",
                      static_cast<int64_t>(images.size()));
    size_t next = 0;
    ParallelMap<EncodedImage> work(
        options_.threads,
        [&](EncodedImage* image) {
          image->index = next++;
          return image->index < images.size();
        },
        [&](EncodedImage* image) { Prepare(images[image->index], image); });
    while (const EncodedImage* const image = work.Next()) {
      Put(images[image->index], *image);
      progress.Add(1, image->raw.size());
    }
    for (const auto& [label, one] : classes_) result_.classes.push_back(one);
    return std::move(result_);
  }

  // Gives the sets their names.
  void Finish() {
    writer_->Finish();
    if (validation_) validation_->Finish();
  }

 private:
  bool IsForValidation(size_t index) const { return !drawn_.empty() && drawn_[index]; }
  RecordWriter& WriterOf(size_t index) const {
    return IsForValidation(index) ? *validation_ : *writer_;
  }

  void Prepare(const ListedImage& listed, EncodedImage* image) {
    encoder_.Convert(listed, image);
    if (!image->problem.empty()) return;
    image->record.key = NumberedKey(static_cast<int64_t>(image->index)) + "_" + listed.path;
    WriterOf(image->index).Prepare(&image->record);
  }

  void Put(const ListedImage& listed, const EncodedImage& image) {
    if (!image.problem.empty()) {
      LOG(ERROR) << image.problem;
      ++result_.skipped;
      return;
    }
    if (options_.check_size) CheckSize(listed, image.image);
    CheckDepth(listed, image.image);
    WriterOf(image.index).Put(image.record);
    const bool validation = IsForValidation(image.index);
    if (list_.labels.empty()) {
      ImagesResult::Class& one = classes_[listed.label];
      one.label = listed.label;
      ++(validation ? one.validation_records : one.records);
    }
    ++(validation ? result_.validation_records : result_.records);
  }

  void CheckSize(const ListedImage& listed, const Image& image) {
    if (height_ == 0) std::tie(height_, width_) = std::pair(image.height, image.width);
    if (image.height == height_ && image.width == width_) return;
    throw Error(ErrorCode::kData, {where_, listed.line},
                Join(listed.line > 0 ? "" : Join("'", EscapeControl(listed.path), "': "),
                     "the image is ", image.width, "x", image.height, " pixels, but the first one ",
                     width_, "x", height_, "; resize the images, or leave out --check_size"));
  }

  // Records with 16 bits per channel hold floats, which a layer whose first record holds bytes
  // refuses.
  void CheckDepth(const ListedImage& listed, const Image& image) {
    const auto bits = [](bool deep) { return deep ? "16" : "8"; };
    const bool deep = !image.floats.empty();
    if (result_.records + result_.validation_records == 0) is_deep_ = deep;
    if (deep == is_deep_) return;
    throw Error(ErrorCode::kData, {where_, listed.line},
                Join("'", EscapeControl(listed.path), "' has ", bits(deep),
                     " bits per channel, but the first image has ", bits(is_deep_),
                     "; convert the images so that all have the same"));
  }

  const ImagesOptions& options_;
  const ImageList& list_;
  const std::string& where_;
  ImageEncoder encoder_;
  std::unique_ptr<RecordWriter> writer_, validation_;
  std::vector<bool> drawn_;
  ImagesResult result_;
  std::map<int32_t, ImagesResult::Class> classes_;
  int height_ = 0, width_ = 0;  // of the first picture
  bool is_deep_ = false;        // the first picture has 16 bits per channel
};

// Draws from each class. The images of a list with several labels are of one class, label 0.
std::vector<bool> DrawValidation(const ImagesOptions& options, const ImageList& list) {
  if (options.validation.empty()) return {};
  std::vector<int32_t> labels;
  for (const ListedImage& image : list.images) {
    labels.push_back(list.labels.empty() ? image.label : 0);
  }
  return DrawSplit(labels, options.validation, true, options.seed);
}

ImageList ListFolders(const std::string& root) {
  ClassFolders found = FindClassFolders(root);
  LOG_IF(INFO, !found.others.empty()) << EscapeControl(OthersText(found));
  ImageList list;
  list.path = root;
  list.images = std::move(found.images);
  list.classes = std::move(found.names);
  return list;
}

}  // namespace

std::string ValidationPath(const std::string& path) {
  const std::string folder = FolderOf(path);
  std::string name = FileNameOf(path);
  const size_t train = name.find("train"), dot = name.rfind('.');
  if (train != std::string::npos) {
    name.replace(train, 5, "val");
  } else {
    name.insert(dot == std::string::npos ? name.size() : dot, "_val");
  }
  return JoinPath(folder, name);
}

ImagesResult WriteImages(const ImagesOptions& options) {
  CheckOptions(options);
  const bool folders = options.list.empty();
  ImageList list = folders ? ListFolders(options.root) : ReadImageList(options.list);
  const std::vector<std::string>& names = list.classes;
  if (options.shuffle) Shuffle(options.seed, &list.images);
  LOG(INFO) << "A total of " << list.images.size() << " images.";
  std::string validation = options.validation.empty()        ? ""
                           : options.validation_path.empty() ? ValidationPath(options.output.path)
                                                             : options.validation_path;
  const std::string labels = !folders ? ""
                             : options.labels.empty()
                                 ? JoinPath(FolderOf(options.output.path), kLabelsName)
                                 : options.labels;
  if (folders) RefuseOtherLabels(labels, LabelsText(names));
  Writing writing(options, list, validation, DrawValidation(options, list));
  ImagesResult result = writing.Run();
  RequireRecords(options, list.path, list.images.size(), result);
  result.validation_path = std::move(validation);
  result.labels = labels;
  const bool new_labels = folders && !Exists(labels);
  if (folders) {
    if (new_labels) WriteWhole(labels, LabelsText(names));
    for (ImagesResult::Class& one : result.classes) {
      one.name = names[static_cast<size_t>(one.label)];
    }
  }
  try {
    writing.Finish();
  } catch (...) {
    if (new_labels) FileOps::Posix().Unlink(labels);
    throw;
  }
  if (!options.mean.empty()) WriteMean(options.output.path, options.mean);
  return result;
}

}  // namespace trainer
