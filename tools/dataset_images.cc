#include <iostream>

#include "dataset_task.h"
#include "shared_flags.h"
#include "trainer/dataset/dataset.h"

namespace trainer {
namespace {

void ConvertImages(const Flags& flags) {
  const std::vector<std::string>& words = flags.words();
  ImagesOptions options;
  options.root = words[1];
  options.list = words[2];
  options.database = words[3];
  options.backend = BackendName(flags);
  options.gray = flags.Switch("gray");
  options.height = flags.Whole("resize_height");
  options.width = flags.Whole("resize_width");
  options.shuffle = flags.Switch("shuffle");
  options.seed = static_cast<uint64_t>(flags.Whole("seed"));
  options.check_size = flags.Switch("check_size");
  options.encoded = flags.Switch("encoded");
  options.encode_type = flags.Text("encode_type");
  const ImagesResult result = WriteImages(options);
  std::cout << options.database << ": " << result.records << " records\n";
  if (result.skipped > 0) std::cout << "skipped: " << result.skipped << " unreadable files\n";
}

constexpr int64_t kMaxSide = 1 << 16;

const RegisterDatasetTask kImages(
    "images",
    {.wanted = "ROOT LIST DB",
     .words = 3,
     .text = "images makes a database of the JPEG, PNG, PGM and PPM files in LIST, lines 'path "
             "label' with paths below ROOT. Keys are %08d_<path>. Unreadable files are logged and "
             "left out.",
     .example = "trainer dataset images photos/ train.txt train_lmdb --shuffle \\\n"
                "    --resize_height=256 --resize_width=256",
     .flags = {{.name = "gray", .kind = FlagKind::kSwitch, .help = "images: 1 channel, not 3"},
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
               {.name = "shuffle",
                .kind = FlagKind::kSwitch,
                .help = "images: write them in a random order"},
               {.name = "check_size",
                .kind = FlagKind::kSwitch,
                .help = "images: refuse images of different sizes"},
               {.name = "encoded",
                .kind = FlagKind::kSwitch,
                .help = "images: store files, not pixels"},
               {.name = "encode_type",
                .value = "jpg|png",
                .help = "images: store images as files of this type",
                .choices = "jpg|png"}},
     .run = ConvertImages});

}  // namespace
}  // namespace trainer
