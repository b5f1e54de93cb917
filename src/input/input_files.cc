#include "trainer/input/input_files.h"

#include "trainer/config/text/prototxt.h"
#include "trainer/input/image_list.h"
#include "trainer/input/source.h"
#include "trainer/input/window_list.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

std::vector<std::string> BelowRoot(const std::vector<ListedImage>& images,
                                   const std::string& root) {
  std::vector<std::string> files;
  for (const ListedImage& image : images) files.push_back(root + image.path);
  return files;
}

}  // namespace

std::vector<std::string> InputFiles::Files() const {
  if (kind == Kind::kImageList) return BelowRoot(ReadImages(path).images, root);
  if (kind == Kind::kWindowList) return BelowRoot(ReadWindowList(path).images, root);
  return FilesOfSet(path);
}

std::optional<InputFiles> InputFilesOf(const LayerSpec& layer) {
  using Kind = InputFiles::Kind;
  const caffe::LayerParameter& proto = layer.proto();
  const auto found = [&](const std::string& source) {
    return source.empty() ? "" : ResolvePath(source, layer.Where().file);
  };
  if (layer.type() == "Data") {
    const caffe::DataParameter& param = proto.data_param();
    const bool tar = param.backend() == caffe::DataParameter::TAR;
    return InputFiles{tar ? Kind::kTar : Kind::kDatabase,
                      caffe::DataParameter::DB_Name(param.backend()),
                      "data_param",
                      param.source().empty() ? "" : DatabasePath(layer),
                      "",
                      param.batch_size(),
                      param.sampling() == caffe::BALANCED};
  }
  const auto listed = [&](Kind kind, const char* name, const auto& param) {
    return InputFiles{
        kind, "files", name, found(param.source()), param.root_folder(), param.batch_size()};
  };
  if (layer.type() == "ImageData") {
    InputFiles files = listed(Kind::kImageList, "image_data_param", proto.image_data_param());
    files.root = RootOfImages(files.path, files.root);
    files.balanced = proto.image_data_param().sampling() == caffe::BALANCED;
    return files;
  }
  if (layer.type() == "WindowData") {
    return listed(Kind::kWindowList, "window_data_param", proto.window_data_param());
  }
  if (layer.type() == "HDF5Data") {
    const caffe::HDF5DataParameter& param = proto.hdf5_data_param();
    return InputFiles{Kind::kHdf5List,       "HDF5", "hdf5_data_param",
                      found(param.source()), "",     param.batch_size()};
  }
  return std::nullopt;
}

}  // namespace trainer
