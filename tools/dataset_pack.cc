#include "dataset_images.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

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
    throw Error(ErrorCode::kUsage, Join("'", EscapeControl(path),
                                        "' is not the name of a tar file; call it NAME.tar"));
  }
  Pack(flags);
}

const RegisterDatasetTask kPack(
    "pack",
    {.wanted = "ROOT LIST SET, or FOLDER SET",
     .words = 3,
     .min_words = 2,
     .text =
         "pack puts many picture files, named as for images, into one large SET that network "
         "file systems read fast: a database, NAME.tar, or NAME.h5. The files stay as they are, "
         "but gray ones, which become color ones without --gray, and but for NAME.h5, which holds "
         "pixels: there they must be of one size. Each is decoded once, and those that cannot be "
         "are left out.",
     .example = "trainer dataset pack photos/ train_lmdb --shuffle",
     .run = Pack});

const RegisterDatasetTask kTar(
    "tar", {.wanted = "ROOT LIST NAME.tar, or FOLDER NAME.tar",
            .words = 3,
            .min_words = 2,
            .text = "tar packs picture files into tar files, as WebDataset names them.",
            .example = "trainer dataset tar photos/ train.tar --shuffle --shard_size=1GiB",
            .run = Tar});

}  // namespace
}  // namespace trainer
