// Rewrites arrays of weights that have an old or foreign form.
#include <algorithm>
#include <map>
#include <string>

#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/config/upgrade/upgrade.h"
#include "upgrade/upgrade_layers.h"

namespace trainer {
namespace {

// Returns how many axes blob `index` of a layer has now, for the types that are older than `shape`;
// 0 if that is not known.
size_t AxesNow(const std::string& type, int index) {
  if (type != "Convolution" && type != "Deconvolution" && type != "InnerProduct") return 0;
  if (index > 0) return 1;
  return type == "InnerProduct" ? 2 : 4;
}

// Returns the old four sizes without the leading sizes that pad a shape of `axes` axes; empty if
// they do not fit.
std::vector<int64_t> WithoutPadding(const std::vector<int64_t>& dims, size_t axes) {
  if (axes == 0 || axes > dims.size()) return {};
  const auto first = dims.end() - static_cast<std::ptrdiff_t>(axes);
  if (!std::all_of(dims.begin(), first, [](int64_t dim) { return dim == 1; })) return {};
  return {first, dims.end()};
}

// Returns the gradients of a blob as a separate blob.
caffe::BlobProto DiffOf(const caffe::BlobProto& blob) {
  caffe::BlobProto diff;
  diff.set_num(blob.num());
  diff.set_channels(blob.channels());
  diff.set_height(blob.height());
  diff.set_width(blob.width());
  if (!blob.has_num() && !blob.has_channels() && !blob.has_height() && !blob.has_width()) {
    diff.Clear();
    *diff.mutable_shape() = blob.shape();
  }
  *diff.mutable_data() = blob.diff();
  *diff.mutable_double_data() = blob.double_diff();
  if (blob.has_raw_diff_type()) diff.set_raw_data_type(blob.raw_diff_type());
  diff.set_raw_data(blob.raw_diff());
  return diff;
}

// Counts the blobs for each kind of change.
using Changes = std::map<std::string, int>;

// Rewrites one blob and its gradients as a shape and floats, and counts what it changed.
void UpgradeBlob(const caffe::LayerParameter& layer, int index, const std::string& file,
                 caffe::BlobProto* blob, Changes* changes) {
  if (blob->ByteSizeLong() == 0) return;  // it belongs to another layer, so HDF5 leaves it out
  const std::string what = BlobName(layer.name(), index);
  const BlobData data = ReadBlob(*blob, {file}, what);
  const bool has_diff =
      blob->diff_size() > 0 || blob->double_diff_size() > 0 || !blob->raw_diff().empty();
  std::vector<int64_t> dims = data.dims;
  if (data.legacy) dims = WithoutPadding(data.dims, AxesNow(layer.type(), index));
  const bool keeps_sizes = data.legacy && dims.empty();
  caffe::BlobProto now;
  WriteBlob(dims, data.values, &now);
  if (keeps_sizes) {
    now.clear_shape();
    now.set_num(blob->num());
    now.set_channels(blob->channels());
    now.set_height(blob->height());
    now.set_width(blob->width());
  } else if (data.legacy) {
    ++(*changes)["wrote the four old sizes as a shape"];
  }
  if (has_diff) {
    const caffe::BlobProto diff = DiffOf(*blob);
    const BlobData gradients = ReadBlob(diff, {file}, what + " (gradients)");
    now.mutable_diff()->Add(gradients.values.begin(), gradients.values.end());
  }
  if (blob->double_data_size() > 0) ++(*changes)["rounded double numbers to float"];
  if (blob->data_size() == 0 && blob->double_data_size() == 0 && !blob->raw_data().empty()) {
    ++(*changes)[Join("wrote raw data of type ", caffe::Type_Name(blob->raw_data_type()),
                      " as plain floats")];
  }
  *blob = std::move(now);
}

}  // namespace

Upgrades UpgradeBlobs(caffe::NetParameter* net, const std::string& file) {
  Changes changes;
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    for (int i = 0; i < layer.blobs_size(); ++i) {
      UpgradeBlob(layer, i, file, layer.mutable_blobs(i), &changes);
    }
  }
  Upgrades upgrades;
  for (const auto& [change, count] : changes) {
    upgrades.done.push_back(Join(file, ": ", change, " in ", Counted(count, "blob")));
  }
  return upgrades;
}

}  // namespace trainer
