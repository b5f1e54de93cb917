#pragma once
// Weights files of Caffe's relatives that hold a layer's blobs in another form than this program.

#include <functional>
#include <string>

#include "trainer/config/layer_spec.h"

namespace trainer {

// Turns what a file holds for a layer into the blobs that the layer of `spec` has, into `adapted`;
// false where `stored` can be taken as it is, whose number and shapes the caller checks. Throws
// kData naming `file`.
using BlobAdapter = std::function<bool(const LayerSpec& spec, const caffe::LayerParameter& stored,
                                       const std::string& file, caffe::LayerParameter* adapted)>;

// By the type of `spec`; false for types without another form.
bool AdaptBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored, const std::string& file,
                caffe::LayerParameter* adapted);

// const RegisterBlobForms kForms("BatchNorm", Adapt);
struct RegisterBlobForms {
  RegisterBlobForms(const char* type, BlobAdapter adapter);
};

}  // namespace trainer
