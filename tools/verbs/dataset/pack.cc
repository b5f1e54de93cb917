#include "dataset_verb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

// Makes a set that holds the image files unchanged, or decoded if the format is HDF5 or NumPy's.
class Pack : public ImageSetVerb {
 protected:
  void RunTask() override {
    ImagesOptions options = Options();
    const std::string format = DetectFormat(options.output.path);
    options.encoded = format != "HDF5" && format != "NUMPY";
    Write(options);
  }
};

// Makes the same set as tar files, whose name must end in .tar.
class Tar final : public Pack {
  void RunTask() override {
    const std::string& path = words().back();
    if (!path.ends_with(".tar")) {
      throw Error(ErrorCode::kUsage,
                  Join("'", EscapeControl(path),
                       "' does not end in .tar; give the tar file a name such as NAME.tar"));
    }
    Pack::RunTask();
  }
};

const RegisterVerb<Pack> kPack("dataset pack");
const RegisterVerb<Tar> kTar("dataset tar");

}  // namespace
}  // namespace trainer
