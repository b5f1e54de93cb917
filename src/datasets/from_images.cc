#include "trainer/datasets/from_images.h"

#include <glog/logging.h>

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "image_encoder.h"
#include "parallel_map.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/class_folders.h"
#include "trainer/datasets/mean.h"
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
  if (!options.mean.empty() && (kind == "TAR" || kind == "HDF5")) {
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

// Where the pictures go: one set, or two.
class Writers {
 public:
  Writers(const ImagesOptions& options, const std::string& validation_path, std::vector<bool> drawn)
      : writer_(OpenRecordWriter(options.output)), drawn_(std::move(drawn)) {
    if (drawn_.empty()) return;
    WriteOptions output = options.output;
    output.path = validation_path;
    validation_ = OpenRecordWriter(output);
  }

  bool IsForValidation(size_t index) const { return !drawn_.empty() && drawn_[index]; }
  RecordWriter& For(size_t index) { return IsForValidation(index) ? *validation_ : *writer_; }
  void Finish() {
    writer_->Finish();
    if (validation_) validation_->Finish();
  }

 private:
  std::unique_ptr<RecordWriter> writer_, validation_;
  std::vector<bool> drawn_;  // which pictures are for validation; none: no second set
};

class Writing {
 public:
  Writing(const ImagesOptions& options, const std::string& where, Writers* writers)
      : options_(options), where_(where), converter_(options, where), writers_(*writers) {}

  ImagesResult Run(const std::vector<ListedImage>& images) {
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

 private:
  void Prepare(const ListedImage& listed, EncodedImage* image) {
    converter_.Convert(listed, image);
    if (!image->problem.empty()) return;
    image->record.key = NumberedKey(static_cast<int64_t>(image->index)) + "_" + listed.path;
    writers_.For(image->index).Prepare(&image->record);
  }

  void Put(const ListedImage& listed, const EncodedImage& image) {
    if (!image.problem.empty()) {
      LOG(ERROR) << image.problem;
      ++result_.skipped;
      return;
    }
    if (options_.check_size) CheckSize(listed, image);
    writers_.For(image.index).Put(image.record);
    ImagesResult::Class& one = classes_[listed.label];
    one.label = listed.label;
    const bool validation = writers_.IsForValidation(image.index);
    ++(validation ? one.validation_records : one.records);
    ++(validation ? result_.validation_records : result_.records);
  }

  void CheckSize(const ListedImage& listed, const EncodedImage& image) {
    if (height_ == 0) std::tie(height_, width_) = std::pair(image.height, image.width);
    if (image.height == height_ && image.width == width_) return;
    throw Error(ErrorCode::kData, {where_, listed.line},
                Join(listed.line > 0 ? "" : Join("'", EscapeControl(listed.path), "': "),
                     "the image is ", image.width, "x", image.height, " pixels, but the first one ",
                     width_, "x", height_, "; resize the images, or leave out --check_size"));
  }

  const ImagesOptions& options_;
  const std::string& where_;
  ImageEncoder converter_;
  Writers& writers_;
  ImagesResult result_;
  std::map<int32_t, ImagesResult::Class> classes_;
  int height_ = 0, width_ = 0;  // of the first picture
};

std::vector<bool> DrawValidation(const ImagesOptions& options,
                                 const std::vector<ListedImage>& images) {
  if (options.validation.empty()) return {};
  std::vector<int32_t> labels;
  for (const ListedImage& image : images) labels.push_back(image.label);
  return DrawSplit(labels, options.validation, true, options.seed);
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
  const std::string& where = folders ? options.root : options.list;
  ClassFolders found;
  if (folders) {
    found = FindClassFolders(options.root);
    LOG_IF(INFO, !found.others.empty()) << EscapeControl(OthersText(found));
  }
  std::vector<ListedImage> images = folders ? std::move(found.images) : ReadImageList(options.list);
  if (options.shuffle) Shuffle(options.seed, &images);
  LOG(INFO) << "A total of " << images.size() << " images.";
  std::string validation = options.validation.empty()        ? ""
                           : options.validation_path.empty() ? ValidationPath(options.output.path)
                                                             : options.validation_path;
  const std::string labels = !folders ? ""
                             : options.labels.empty()
                                 ? JoinPath(FolderOf(options.output.path), "labels.txt")
                                 : options.labels;
  if (folders) RefuseOtherLabels(labels, LabelsText(found.names));
  Writers writers(options, validation, DrawValidation(options, images));
  ImagesResult result = Writing(options, where, &writers).Run(images);
  RequireRecords(options, where, images.size(), result);
  result.validation_path = std::move(validation);
  result.labels = labels;
  const bool new_labels = folders && !Exists(labels);
  if (folders) {
    if (new_labels) WriteWhole(labels, LabelsText(found.names));
    for (ImagesResult::Class& one : result.classes) {
      one.name = found.names[static_cast<size_t>(one.label)];
    }
  }
  try {
    writers.Finish();
  } catch (...) {
    if (new_labels) FileOps::Posix().Unlink(labels);
    throw;
  }
  if (!options.mean.empty()) WriteMean(options.output.path, options.mean);
  return result;
}

}  // namespace trainer
