#include "dataset_images.h"

#include <iostream>

#include "shared_flags.h"
#include "table.h"
#include "trainer/base/text.h"

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
     .text = "images makes a database of the JPEG, PNG, PGM and PPM files in LIST, lines 'path "
             "label' with paths below ROOT; or of those in FOLDER, which has a folder for each "
             "class: their names in byte order are the labels from 0 and go to labels.txt beside "
             "DB. Keys are %08d_<path>. Unreadable files are logged and left out. A DB called "
             "NAME.h5 is an HDF5 file, NAME.tar a tar file. With --val a part of each class goes "
             "to a second set, val_lmdb beside train_lmdb.",
     .example = "trainer dataset images photos/ train.txt train_lmdb --shuffle \\\n"
                "    --resize_height=256 --resize_width=256\n"
                "trainer dataset images photos/ train_lmdb --shuffle --val=10% --encoded \\\n"
                "    --resize_height=256 --resize_width=256 --resize_mode=short",
     .flags = {{.name = "gray",
                .kind = FlagKind::kSwitch,
                .help = "images, pack, tar: 1 channel, not 3"},
               {.name = "resize_height",
                .kind = FlagKind::kWhole,
                .value = "PIXELS",
                .fallback = "0",
                .help = "images: height of all images; 0 keeps each one's",
                .max = kMaxSide},
               {.name = "resize_width",
                .kind = FlagKind::kWhole,
                .value = "PIXELS",
                .fallback = "0",
                .help = "images: width of all images; 0 keeps each one's",
                .max = kMaxSide},
               {.name = "resize_mode",
                .value = "MODE",
                .fallback = "exact",
                .help = "images: exact stretches; short keeps proportions, both sides at least "
                        "that long; pad keeps them inside that size, the rest black",
                .choices = "exact|short|pad"},
               {.name = "shuffle",
                .kind = FlagKind::kSwitch,
                .help = "images, pack, tar: write them in a random order"},
               {.name = "val",
                .value = "PART",
                .help = "images, pack, tar: of each class so much to a second set: 10%, 0.1, or "
                        "500 images of all"},
               {.name = "val_out", .value = "PATH", .help = "images, pack, tar: the second set"},
               {.name = "labels",
                .value = "FILE",
                .help = "images, pack, tar: where the names of a folder's classes go"},
               {.name = "mean",
                .value = "FILE",
                .help = "images: also write the mean of the records, as mean does"},
               {.name = "check_size",
                .kind = FlagKind::kSwitch,
                .help = "images: refuse images of different sizes"},
               {.name = "encoded",
                .kind = FlagKind::kSwitch,
                .help = "images: store files, not pixels; as they are where nothing is resized"},
               {.name = "encode_type",
                .value = "jpg|png",
                .help = "images: store images as files of this type",
                .choices = "jpg|png"},
               {.name = "quality",
                .kind = FlagKind::kWhole,
                .value = "N",
                .fallback = "95",
                .help = "images: of JPEG files that are made",
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
