#include "dataset_images.h"

#include <iostream>

#include "shared_flags.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

ImageFit FitOf(const Flags& flags) {
  const std::string& mode = flags.Text("resize_mode");
  return mode == "short" ? ImageFit::kShort : mode == "pad" ? ImageFit::kPad : ImageFit::kExact;
}

void ConvertImages(const Flags& flags) {
  ImagesOptions options = ImagesOptionsOf(flags);
  options.height = flags.Whole("resize_height");
  options.width = flags.Whole("resize_width");
  options.fit = FitOf(flags);
  options.check_size = flags.Switch("check_size");
  options.encoded = flags.Switch("encoded");
  options.encode_type = flags.Text("encode_type");
  options.quality = flags.Whole("quality");
  options.mean = flags.Text("mean");
  if (!options.mean.empty()) RefuseToReplace(flags, options.mean);
  PrintImages(options, WriteImages(options));
  WriteChecksumsOf(flags, options.output.path);
}

constexpr int64_t kMaxSide = 1 << 16;

const RegisterDatasetTask kDatasetImagesTask(
    "images",
    {.wanted = "ROOT LIST DB, or FOLDER DB",
     .words = 3,
     .min_words = 2,
     .text = "'images' makes a database from JPEG, PNG, PGM and PPM files. LIST has lines 'path "
             "label' with paths relative to ROOT. Or FOLDER has one folder per class: label 0 is "
             "the first folder name in byte order, and labels.txt next to DB lists the names. Keys "
             "are %08d_<path>. Files that cannot be read are logged and skipped. If DB is NAME.h5, "
             "it is an HDF5 file; if it is NAME.tar, it is a tar file. With --val, a part of each "
             "class goes to a second set, such as val_lmdb next to train_lmdb.",
     .example = "trainer dataset images photos/ train.txt train_lmdb --shuffle \\\n"
                "    --resize_height=256 --resize_width=256\n"
                "trainer dataset images photos/ train_lmdb --shuffle --val=10% --encoded \\\n"
                "    --resize_height=256 --resize_width=256 --resize_mode=short",
     .flags = {{.name = "gray",
                .kind = FlagKind::kSwitch,
                .help = "images, pack, tar: store 1 channel instead of 3"},
               {.name = "resize_height",
                .kind = FlagKind::kWhole,
                .value = "PIXELS",
                .fallback = "0",
                .help = "images: height of all images; 0 keeps the height of each image",
                .max = kMaxSide},
               {.name = "resize_width",
                .kind = FlagKind::kWhole,
                .value = "PIXELS",
                .fallback = "0",
                .help = "images: width of all images; 0 keeps the width of each image",
                .max = kMaxSide},
               {.name = "resize_mode",
                .value = "MODE",
                .fallback = "exact",
                .help = "images: exact stretches to the size; short keeps the proportions and "
                        "makes both sides at least that long; pad keeps the proportions, fits the "
                        "image inside and fills the rest with black",
                .choices = "exact|short|pad"},
               {.name = "shuffle",
                .kind = FlagKind::kSwitch,
                .help = "images, pack, tar: write the images in a random order"},
               {.name = "val",
                .value = "PART",
                .help = "images, pack, tar: put this part of each class into a second set: 10%, "
                        "0.1, or 500 images in total"},
               {.name = "val_out",
                .value = "PATH",
                .help = "images, pack, tar: path of the second set"},
               {.name = "labels",
                .value = "FILE",
                .help = "images, pack, tar: file for the names of the classes"},
               {.name = "mean",
                .value = "FILE",
                .help = "images: also write the mean of the records to FILE, as 'mean' does"},
               {.name = "check_size",
                .kind = FlagKind::kSwitch,
                .help = "images: stop with an error if two images differ in size"},
               {.name = "encoded",
                .kind = FlagKind::kSwitch,
                .help = "images: store encoded files instead of pixels; a file that is not resized "
                        "is stored unchanged"},
               {.name = "encode_type",
                .value = "jpg|png",
                .help = "images: store images as files of this type",
                .choices = "jpg|png"},
               {.name = "quality",
                .kind = FlagKind::kWhole,
                .value = "N",
                .fallback = "95",
                .help = "images: quality of the JPEG files that are written",
                .min = 1,
                .max = 100}},
     .run = ConvertImages});

}  // namespace

ImagesOptions ImagesOptionsOf(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  ImagesOptions options;
  options.root = words[1];
  options.list = words.size() == 4 ? words[2] : "";
  options.output = OutputOf(flags, words.back());
  options.gray = flags.Switch("gray");
  options.shuffle = flags.Switch("shuffle");
  options.seed = static_cast<uint64_t>(flags.Whole("seed"));
  options.threads = ThreadsOf(flags);
  options.validation = ParseShare("val", flags.Text("val"));
  options.validation_path = flags.Text("val_out");
  options.labels = flags.Text("labels");
  return options;
}

void PrintImages(const ImagesOptions& options, const ImagesResult& result) {
  std::cout << options.output.path << ": " << result.records << " records\n";
  if (!result.validation_path.empty()) {
    std::cout << result.validation_path << ": " << result.validation_records << " records\n";
  }
  if (result.skipped > 0) std::cout << "skipped: " << result.skipped << " unreadable files\n";
  if (result.labels.empty()) return;
  std::cout << result.labels << ": " << result.classes.size() << " classes\n";
  Table table({"label", "class", "records", "for validation"});
  for (const ImagesResult::Class& one : result.classes) {
    table.Add({Join(one.label), EscapeControl(one.name), Join(one.records),
               Join(one.validation_records)});
  }
  std::cout << table.ToString();
}

}  // namespace trainer
