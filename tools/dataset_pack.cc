#include "dataset_images.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The files as they are, where the set takes files.
void Pack(const Flags& flags) {
  ImagesOptions options = ImagesOptionsOf(flags);
  options.encoded = KindOfSet(options.output.path) != "HDF5";
  PrintImages(options, WriteImages(options));
  WriteChecksumsOf(flags, options.output.path);
}

void Tar(const Flags& flags) {
  const std::string& path = flags.words().back();
  if (!path.ends_with(".tar")) {
    throw Error(ErrorCode::kUsage,
                Join("'", EscapeControl(path),
                     "' does not end in .tar; give the tar file a name such as NAME.tar"));
  }
  Pack(flags);
}

const RegisterDatasetTask kPack(
    "pack",
    {.wanted = "ROOT LIST SET, or FOLDER SET",
     .words = 3,
     .min_words = 2,
     .text = "'pack' puts many image files into one large SET that network file systems read fast: "
             "a database, NAME.tar or NAME.h5. You name the images as for 'images'. The files are "
             "stored unchanged, with two exceptions: without --gray, gray images become color "
             "images; NAME.h5 stores pixels, so all images must have one size. Each file is "
             "decoded once as a check; files that cannot be decoded are skipped.",
     .example = "trainer dataset pack photos/ train_lmdb --shuffle",
     .run = Pack});

const RegisterDatasetTask kTar(
    "tar", {.wanted = "ROOT LIST NAME.tar, or FOLDER NAME.tar",
            .words = 3,
            .min_words = 2,
            .text = "'tar' packs image files into tar files, with the names that WebDataset uses.",
            .example = "trainer dataset tar photos/ train.tar --shuffle --shard_size=1GiB",
            .run = Tar});

}  // namespace
}  // namespace trainer
